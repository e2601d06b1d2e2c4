// A libcuda.so.1 for machines without NVIDIA's driver, which accepts code and runs none. cuDNN
// loads the code of a plan before the plan tells its workspace, and asks nothing else of a driver.
// For tests only.
#include <cstdint>

namespace {

constexpr int kSuccess = 0, kStubLibrary = 34;  // cudaErrorStubLibrary
char code;                                      // handles point to this

}  // namespace

extern "C" {

int cuLibraryLoadData(void** library) {
  *library = &code;
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel) {
  *kernel = &code;
  return kSuccess;
}
int cuLibraryUnload(void*) { return kSuccess; }

#define STRATA_NOT_HERE(name) \
  int name() { return kStubLibrary; }
STRATA_NOT_HERE(cuCtxGetCurrent)
STRATA_NOT_HERE(cuCtxGetLimit)
STRATA_NOT_HERE(cuCtxPopCurrent)
STRATA_NOT_HERE(cuCtxPushCurrent)
STRATA_NOT_HERE(cuDeviceGet)
STRATA_NOT_HERE(cuDeviceGetCount)
STRATA_NOT_HERE(cuDriverGetVersion)
STRATA_NOT_HERE(cuGetErrorName)
STRATA_NOT_HERE(cuGetErrorString)
STRATA_NOT_HERE(cuInit)
STRATA_NOT_HERE(cuKernelGetAttribute)
STRATA_NOT_HERE(cuKernelGetFunction)
STRATA_NOT_HERE(cuKernelSetAttribute)
STRATA_NOT_HERE(cuLaunchCooperativeKernel)
STRATA_NOT_HERE(cuLaunchKernel)
STRATA_NOT_HERE(cuLaunchKernelEx)
STRATA_NOT_HERE(cuLibraryLoadFromFile)
STRATA_NOT_HERE(cuLinkAddData)
STRATA_NOT_HERE(cuLinkComplete)
STRATA_NOT_HERE(cuLinkCreate)
STRATA_NOT_HERE(cuLinkDestroy)
STRATA_NOT_HERE(cuOccupancyMaxPotentialClusterSize)
STRATA_NOT_HERE(cuStreamGetCtx)
#undef STRATA_NOT_HERE

}  // extern "C"
