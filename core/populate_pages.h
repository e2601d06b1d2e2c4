// Makes the pages of a mapping present before they are needed.
#pragma once

#include <cstddef>
#include <span>

namespace strata {

/// Makes each page of private or shared writable memory of this process present, as huge ones where
/// the kernel gives them; its content stays. `memory` starts at a border of pages. Large memory is
/// shared by as many threads as this process may use processors, at most sixteen: a system makes
/// pages by zeroing them, on the thread that asks. Returns 0, or errno of what madvise refused.
/// Kernels before 5.14 do not know the advice (EINVAL): pages come when they are touched there,
/// which is no error. Exceeding a control group's limit ends the process, as at any touch.
[[nodiscard]] int populate_pages(std::span<std::byte> memory);

}  // namespace strata
