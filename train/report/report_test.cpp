// Reports of a small model whose Programs are known.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "core/format_bytes.h"
#include "core/json.h"
#include "core/testing/test_directory.h"
#include "train/engine/memory_report.h"
#include "train/models/hf_config.h"
#include "train/report/about_report.h"
#include "train/report/compared_runs.h"
#include "train/report/report_directory.h"
#include "train/report/report_page.h"
#include "train/report/report_tables.h"
#include "train/report/report_trace.h"
#include "train/report/summary_text.h"

namespace strata::train {
namespace {

using runtime::Tier;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

using Row = std::vector<std::string>;

struct Table {
  Row head;
  std::vector<Row> rows;
  [[nodiscard]] std::string at(const Row& row, const std::string& name) const {
    return row.at(static_cast<std::size_t>(std::ranges::find(head, name) - head.begin()));
  }
  [[nodiscard]] std::int64_t whole(const Row& row, const std::string& name) const {
    return std::stoll(at(row, name));
  }
};

Row split(const std::string& line) {
  Row fields(1);
  for (const char c : line) {
    if (c == ',')
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

Table read_table(const std::string& text) {
  std::istringstream lines(text);
  Table table;
  std::string line;
  std::getline(lines, line);
  table.head = split(line);
  while (std::getline(lines, line)) {
    table.rows.push_back(split(line));
    EXPECT_EQ(table.rows.back().size(), table.head.size()) << line;
  }
  return table;
}

/// One rank of two, three micro-steps.
struct Planned {
  Planned() {
    request.options.sequence_length = 32;
    request.options.micro_batch = 1;
    request.options.accumulation = 3;
    request.options.global_batch = 6;
    request.options.zero.stage = 3;
    request.options.activation_checkpointing = true;
    programs = build_programs(request, seat, machine);
  }
  [[nodiscard]] RunReport report() const {
    return make_report({request, settings, programs, machine, seat, "a <device> & more"},
                       foresee_step(programs, machine));
  }
  const comm::Seat seat{0, 2, comm::Exchange::peer_memory};
  const machine::Machine machine = machine::cpu_machine(2);
  const std::vector<ResolvedField> settings{
      {"model", "</script><b>\u2028", Origin::command_line, "--model"}};
  ProgramRequest request{.model = read_model_config("gpt2-tiny"), .options = {}};
  compile::StepPrograms programs;
};

TEST(Report, TimelinesHaveTheBytesOfTheirProgramsByPurpose) {
  const Planned planned;
  const RunReport report = planned.report();
  ASSERT_THAT(report.timelines, SizeIs(3));
  EXPECT_EQ(report.timelines[0].program->name, "train.first");
  EXPECT_EQ(report.timelines[2].program->name, "train.last");
  for (const ProgramTimeline& timeline : report.timelines)
    for (const Tier tier : {Tier::device, Tier::pinned}) {
      const auto t = static_cast<std::size_t>(tier);
      const runtime::Program& program = *timeline.program;
      EXPECT_EQ(timeline.bytes(tier, timeline.peak(tier)),
                program.persistent_bytes[t] + program.live_bytes[t]);
      EXPECT_LE(timeline.mean_bytes(tier) - 1, static_cast<double>(program.arena_bytes[t]));
      EXPECT_GE(timeline.mean_bytes(tier) + 1, static_cast<double>(program.persistent_bytes[t]));
      for (const auto& live : timeline.live)
        for (const std::int64_t bytes : live[t]) EXPECT_GE(bytes, 0);
    }
}

TEST(Report, CountsOnlyWhatADriveHolds) {
  Planned planned;
  planned.request.options.offload.optimizer = plan::Home::disk;
  planned.request.options.offload.nvme_paths = {"drive"};
  planned.request.saving = runtime::SaveMemory::windows;
  planned.programs = build_programs(planned.request, planned.seat, planned.machine);
  ASSERT_GT(planned.programs.outlet().bytes(), 0);
  ASSERT_GT(planned.programs.second_places_bytes(), 0);
  const std::int64_t bytes = planned.programs.disk_bytes();
  EXPECT_EQ(count_memory(planned.programs).disk.arena(), bytes);
  const RunReport report = planned.report();
  EXPECT_EQ(about(report).arena_bytes.at("disk"), bytes);
  const PeakMoment peak = find_peak(report.timelines, Tier::disk);
  EXPECT_LE(peak.bytes, bytes);
  EXPECT_GE(peak.bytes, count_memory(planned.programs).disk.persistent());
  const std::string text = summary_text(report);
  EXPECT_THAT(text,
              HasSubstr(fmt::format("disk: arena {} ({} bytes)", format_bytes(bytes), bytes)));
  EXPECT_THAT(text, Not(HasSubstr("snapshot, kept between steps")));
}

TEST(Report, ForeseenInstructionsWaitForTheirQueueAndForOthers) {
  const Planned planned;
  const ForeseenStep step = foresee_step(planned.programs, planned.machine);
  EXPECT_GT(step.seconds, 0);
  EXPECT_THAT(step.spans, SizeIs(3));
  const runtime::Program& program = planned.programs.train(zero::MicroStepKind::first);
  const std::vector<TimeSpan>& spans = step.spans.at(program.name);
  ASSERT_EQ(spans.size(), program.instructions.size());
  constexpr double kRounding = 1e-9;
  std::array<double, runtime::kQueues> end_ms{};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const runtime::Instruction& in = program.instructions[i];
    EXPECT_GT(spans[i].end_ms, spans[i].begin_ms);
    double begin = std::exchange(end_ms[static_cast<std::size_t>(in.queue)], spans[i].end_ms);
    for (const std::int32_t other : in.waits)
      begin = std::max(begin, spans[static_cast<std::size_t>(other)].end_ms);
    EXPECT_GE(spans[i].begin_ms, begin - kRounding) << in.label;
  }
}

TEST(Report, TableOfLayersEndsWithTheirSums) {
  const Planned planned;
  const Table table = read_table(layers_csv(planned.report().layers));
  ASSERT_EQ(table.rows.back()[0], "total");
  for (std::size_t column = 1; column <= 7; ++column) {
    std::int64_t sum = 0;
    for (const Row& row : table.rows) sum += std::stoll(row[column]);
    EXPECT_EQ(sum, 2 * std::stoll(table.rows.back()[column])) << table.head[column];
  }
  EXPECT_GT(table.whole(table.rows.back(), "saved_recompute_bytes"), 0);
}

TEST(Report, TableOfInstructionsHasEachOfThemInOrder) {
  const Planned planned;
  const RunReport report = planned.report();
  const Table table = read_table(timeline_csv(report.timelines));
  std::size_t row = 0;
  for (const ProgramTimeline& timeline : report.timelines)
    for (std::size_t i = 0; i < timeline.live.size(); ++i, ++row) {
      EXPECT_EQ(table.at(table.rows.at(row), "program"), timeline.program->name);
      EXPECT_EQ(table.whole(table.rows[row], "instruction"), static_cast<std::int64_t>(i));
      for (const Tier tier : runtime::kAllTiers) {
        const std::string name(name_of(tier));
        const PurposeBytes& live = timeline.live[i][static_cast<std::size_t>(tier)];
        std::int64_t sum = 0;
        for (const Purpose purpose : kAllPurposes) {
          const std::int64_t bytes =
              table.whole(table.rows[row], fmt::format("{}_{}_bytes", name, name_of(purpose)));
          EXPECT_EQ(bytes, live[static_cast<std::size_t>(purpose)]) << name;
          sum += bytes;
        }
        EXPECT_EQ(sum, table.whole(table.rows[row], name + "_bytes"));
      }
      EXPECT_EQ(table.at(table.rows[row], "measured_mean_ms"), "");
    }
  EXPECT_EQ(row, table.rows.size());
}

TEST(Report, FieldsOfTablesAreQuotedWhereTheyHaveTo) {
  EXPECT_EQ(csv_field("linear"), "linear");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"a\""), "\"say \"\"a\"\"\"");
}

TEST(Report, MeasuredTimesGoToTheirInstructionsAndPasses) {
  const Planned planned;
  RunReport report = planned.report();
  const runtime::Program& program = *report.timelines[0].program;
  runtime::TraceRecorder recorder({.of = runtime::TraceOf::device, .steps = {3, 4}});
  const auto run = [&](std::int64_t step, std::int64_t ns) {
    recorder.starting(program, step - 1);
    for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
      recorder.begin(program, i);
      recorder.executed(program, i, step * 1'000'000'000 + i * ns,
                        step * 1'000'000'000 + (i + 1) * ns);
    }
  };
  run(2, 7'000'000);
  run(3, 1'000'000);
  run(4, 3'000'000);
  add_measured(recorder, report.measured, report.timelines);
  EXPECT_EQ(report.measured.first_measured, 3);
  EXPECT_EQ(report.measured.last_measured, 4);
  EXPECT_DOUBLE_EQ(*report.timelines[0].measured_ms[1], 2);
  EXPECT_EQ(report.timelines[0].measured[1], (TimeSpan{3, 6}));
  EXPECT_TRUE(report.timelines[1].measured.empty());
  const PhaseTime& forward = report.measured.phases.at(0);
  EXPECT_EQ(forward.name, "forward");
  EXPECT_DOUBLE_EQ(forward.max_seconds, 3 * forward.min_seconds);
  EXPECT_DOUBLE_EQ(forward.mean_seconds, 2 * forward.min_seconds);
  EXPECT_THAT(summary_text(report), HasSubstr("foreseen"));
}

TEST(Report, AStepOfWhichInstructionsWereDroppedIsNotMeasured) {
  const Planned planned;
  RunReport report = planned.report();
  const runtime::Program& program = *report.timelines[0].program;
  const std::size_t count = program.instructions.size();
  runtime::TraceRecorder recorder(
      {.of = runtime::TraceOf::device, .capacity_per_queue = count + count / 4});
  for (std::int64_t step = 1; step <= 3; ++step) {
    recorder.starting(program, step - 1);
    for (int i = 0; i < static_cast<int>(count); ++i) {
      recorder.begin(program, i);
      recorder.executed(program, i, step * 1'000'000 + i, step * 1'000'000 + i + 1);
    }
  }
  ASSERT_GT(recorder.dropped(), 0);
  add_measured(recorder, report.measured, report.timelines);
  EXPECT_EQ(report.measured.first_measured, 1);
  EXPECT_EQ(report.measured.last_measured, 1);
  for (const PhaseTime& phase : report.measured.phases)
    EXPECT_EQ(phase.min_seconds, phase.max_seconds) << phase.name;
}

TEST(Report, StepsThatStandOutAreThoseThatGrowOrTakeLong) {
  std::vector<StepRow> steps;
  for (std::int64_t step = 1; step <= 15; ++step)
    steps.push_back({.step = step, .seconds = 1, .peak_rss_bytes = 1'000'000'000});
  steps[0].seconds = 30;
  EXPECT_THAT(find_spikes(steps), SizeIs(0)) << "the first step is left out";
  steps[12].seconds = 1.6;
  for (std::size_t i = 5; i < steps.size(); ++i) steps[i].peak_rss_bytes += 100'000'001;
  const std::vector<Spike> spikes = find_spikes(steps);
  ASSERT_THAT(spikes, SizeIs(2));
  EXPECT_EQ(spikes[0].step, 6);
  EXPECT_EQ(spikes[0].what, "the process grew by 95.37 MiB");
  EXPECT_EQ(spikes[1].step, 13);
  EXPECT_EQ(spikes[1].what, "1.6 s, 1.60 x the mean of the 10 before");
  for (StepRow& step : steps) step.device_bytes = step.step < 9 ? 1 : 200'000'001;
  steps[2].device_bytes.reset();
  const std::vector<Spike> of_device = find_spikes(steps);
  ASSERT_THAT(of_device, SizeIs(3));
  EXPECT_EQ(of_device[1].step, 9);
  EXPECT_EQ(of_device[1].what, "the device filled by 190.73 MiB");
}

TEST(Report, SummaryHasBytesOfEachPassAndOfTheFirstAndLastStep) {
  const Planned planned;
  RunReport report = planned.report();
  const std::int64_t kept = report.timelines[0].program->persistent_bytes[0];
  report.measured.steps = {
      {.step = 1, .seconds = 1, .peak_rss_bytes = 2 << 20, .device_bytes = 4 << 20},
      {.step = 5, .seconds = 1, .peak_rss_bytes = 3 << 20, .device_bytes = 5 << 20}};
  const std::string text = summary_text(report);
  EXPECT_THAT(text, HasSubstr("  after step 1: at most 2.00 MiB; after step 5: 3.00 MiB\n"));
  EXPECT_THAT(text, HasSubstr("the device in use by all processes: 4.00 MiB after step 1, 5.00 MiB "
                              "after step 5\n"));
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const ProgramTimeline& timeline : report.timelines)
    for (std::size_t i = 0; i < timeline.live.size(); ++i) {
      if (timeline.program->instructions[i].pass != runtime::Pass::forward) continue;
      least = std::min(least, timeline.bytes(Tier::device, i));
      most = std::max(most, timeline.bytes(Tier::device, i));
    }
  EXPECT_GE(least, kept);
  EXPECT_THAT(text,
              ::testing::ContainsRegex(fmt::format(
                  "bytes in use by pass: +mean +min +max\n    forward +[0-9.]+ [KM]iB +{} +{}\n",
                  format_bytes(least), format_bytes(most))));
}

TEST(Report, OfAFailureSaysWhy) {
  const Planned planned;
  RunReport report = planned.report();
  EXPECT_THAT(summary_text(report), Not(HasSubstr("It failed")));
  report.failure = "the drive is <full>";
  EXPECT_THAT(summary_text(report),
              HasSubstr("\nIt failed before any step was done: the drive is <full>\n"));
  report.measured.steps = {{.step = 4, .seconds = 1}};
  EXPECT_THAT(summary_text(report), HasSubstr("\nIt failed after step 4: the drive is <full>\n"));
  EXPECT_THAT(page_data(report, ""), HasSubstr(R"("failure":"the drive is <full>")"));
}

TEST(Report, TableOfStepsLeavesOpenWhatIsNotKnown) {
  const Planned planned;
  RunReport report = planned.report();
  report.foreseen.seconds = 0;
  report.measured.steps = {{.step = 4, .loss = std::nan(""), .seconds = 0.5, .device_bytes = 7},
                           {.step = 5, .loss = 1.25, .seconds = 0.25, .peak_rss_bytes = 9}};
  const Table table = read_table(steps_csv(report));
  ASSERT_THAT(table.rows, SizeIs(2));
  EXPECT_EQ(table.at(table.rows[0], "loss"), "nan");
  EXPECT_EQ(table.at(table.rows[0], "device_bytes"), "7");
  EXPECT_EQ(table.at(table.rows[1], "device_bytes"), "");
  EXPECT_EQ(table.at(table.rows[1], "foreseen_seconds"), "");
  EXPECT_EQ(table.whole(table.rows[1], "device_arena_bytes"),
            planned.programs.arena_bytes(Tier::device));
}

TEST(Report, ModesSayWhatTheRequestedOneSavesAndCosts) {
  const Planned planned;
  const std::vector<LayerMode> modes = layer_modes(planned.report());
  ASSERT_THAT(modes, SizeIs(3));
  EXPECT_EQ(modes[0].kept_bytes + modes[0].freed_bytes, modes[1].kept_bytes);
  EXPECT_EQ(modes[0].kept_bytes, modes[2].kept_bytes) << "all layers are recomputed as planned";
  EXPECT_NEAR(modes[0].step_seconds, modes[2].step_seconds, 1e-9);
  EXPECT_LT(modes[1].step_seconds, modes[0].step_seconds);
}

TEST(Report, ThePageHoldsItsDataWhereNoTextCanEndTheScript) {
  const Planned planned;
  const RunReport report = planned.report();
  const std::string page = report_page(report, "5 < 6 & </pre>");
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(page, Not(HasSubstr("\u2028")));
  EXPECT_THAT(page, Not(HasSubstr("/*DATA*/")));
  const JsonValue data =
      parse_json(escape_for_script(page_data(report, "5 < 6 & </pre>")), "page", {});
  EXPECT_EQ(data.at("summary").as_string(), "5 < 6 & </pre>");
  EXPECT_EQ(data.at("device").as_string(), "a <device> & more");
  EXPECT_EQ(data.at("settings").elements()[0].elements()[1].as_string(), "</script><b>\u2028");
  EXPECT_EQ(data.at("programs").size(), 3);
}

TEST(Report, APageTakesTheStepsOfOtherRuns) {
  const Planned planned;
  const TestDirectory home;
  write_report(home.path(), planned.report(), nullptr);
  const ComparedRun other{.name = "other", .steps = {{.step = 7, .loss = 1.5, .seconds = 2}}};
  const std::string page = page_with_runs(home.path(), {other});
  EXPECT_THAT(page, HasSubstr(R"("compared":[{"name":"other","steps":{"step":[7],"loss":[1.5],)"));
}

TEST(Report, TheTraceOfAPlanShowsEveryInstructionOnce) {
  const Planned planned;
  const RunReport report = planned.report();
  const TestDirectory home;
  write_report(home.path(), report, nullptr);
  const JsonValue trace = parse_json(read_whole_file(home / "trace.json", 1 << 24), "trace", {});
  std::size_t slices = 0, instructions = 0, counters = 0;
  for (const JsonValue& event : trace.at("traceEvents").elements()) {
    slices += event.at("ph").as_string() == "X" && event.at("cat").as_string() != "step";
    counters += event.at("name").as_string() == "device bytes by purpose";
  }
  for (const ProgramTimeline& timeline : report.timelines) instructions += timeline.live.size();
  EXPECT_EQ(slices, instructions);
  EXPECT_GT(counters, 10u);
  EXPECT_EQ(trace.at("otherData").at("dropped").as_integer(), 0);
}

TEST(ReportDirectory, AnEarlierReportIsReplacedAndOtherFilesStay) {
  const Planned planned;
  const TestDirectory home;
  std::filesystem::create_directories(home / "report");
  (void)home.file("report/mine.txt", "mine");
  (void)home.file("report/summary.txt", "old");
  NewFolders folders;
  require_report_directory(home / "report", folders);
  write_report(home / "report", planned.report(), nullptr);
  EXPECT_EQ(read_whole_file(home / "report/mine.txt", 100), "mine");
  EXPECT_THAT(read_whole_file(home / "report/summary.txt", 1 << 20), HasSubstr("rank 0 of 2"));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(home / "report"))
    ++files;
  EXPECT_EQ(files, 1 + report_files(home.path()).size()) << "nothing half-written is left";
}

TEST(ReportDirectory, AFullDiskLeavesTheEarlierReport) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const Planned planned;
  const TestDirectory home;
  const RunReport report = planned.report();
  write_report(home / "whole", report, nullptr);
  std::uintmax_t largest = 0, smallest = 0;
  for (const auto& file : std::filesystem::directory_iterator(home / "whole")) {
    largest = std::max(largest, file.file_size());
    smallest = smallest == 0 ? file.file_size() : std::min(smallest, file.file_size());
  }
  ASSERT_LT(smallest, largest) << "some files fit within the limit";
  (void)home.file("summary.txt", "old");
  const rlimit small{largest - 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string why = message_of<IoError>([&] { write_report(home.path(), report, nullptr); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(why, AllOf(HasSubstr(home.path()), HasSubstr("write failed")));
  EXPECT_EQ(read_whole_file(home / "summary.txt", 100), "old");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(home.path()))
    ++files;
  EXPECT_EQ(files, 2U) << "the old file and the whole report";
}

TEST(ReportDirectory, IsRefusedWhereItCannotBe) {
  const TestDirectory home;
  const std::string file = home.file("file", "text");
  std::filesystem::create_directories(home / "taken/trace.json");
  const auto refusal = [](const std::string& directory) {
    return message_of<IoError>([&] {
      NewFolders folders;
      require_report_directory(directory, folders);
    });
  };
  EXPECT_THAT(refusal(file), HasSubstr("--memory-report asks for a directory"));
  EXPECT_THAT(refusal(file + "/inside"), HasSubstr("--memory-report"));
  EXPECT_THAT(refusal("/proc/strata-report"),
              HasSubstr("cannot create the --memory-report directory"));
  EXPECT_THAT(refusal(home / "taken"), HasSubstr("move the directory away"));
  EXPECT_EQ(refusal(home / "new/and/deep"), "no error");
  EXPECT_FALSE(std::filesystem::exists(home / "new")) << "no report came";
}

TEST(ReportDirectory, IsMadeAgainWhereItWentWhileItWasEmpty) {
  const Planned planned;
  const TestDirectory home;
  {
    NewFolders of_another_run;
    require_report_directory(home / "new/report", of_another_run);
  }
  write_report(home / "new/report", planned.report(), nullptr);
  EXPECT_TRUE(std::filesystem::exists(home / "new/report/report.html"));
}

}  // namespace
}  // namespace strata::train
