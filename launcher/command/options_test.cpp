#include "launcher/command/options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "launcher/command/mpi_command.h"

namespace strata::launcher {
namespace {

using Words = std::vector<std::string>;

std::string refusal(const Words& arguments) {
  try {
    parse_options(arguments);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Options, OneRankByDefault) {
  const Options options = parse_options({"train"});
  EXPECT_EQ(options.ranks, 1);
  EXPECT_EQ(options.command, Words{"train"});
}

TEST(Options, EverySpellingOfTheRankCount) {
  for (const char* name : {"-np", "-n", "--np", "--num_gpus", "--num-gpus", "--num_accelerators",
                           "--nproc_per_node"}) {
    EXPECT_EQ(parse_options({name, "8", "train"}).ranks, 8) << name;
    EXPECT_EQ(parse_options({std::string(name) + "=8", "train"}).ranks, 8) << name;
  }
}

TEST(Options, EndAtTheProgram) {
  const Options options =
      parse_options({"--num_gpus", "8", "train", "-np", "3", "--deepspeed", "x"});
  EXPECT_EQ(options.ranks, 8);
  EXPECT_EQ(options.command, (Words{"train", "-np", "3", "--deepspeed", "x"}));
  EXPECT_EQ(parse_options({"-np", "2", "--", "-odd-name"}).command, Words{"-odd-name"});
}

TEST(Options, ValuesAreChecked) {
  for (const char* value : {"0", "-1", "x", "2x", "", "1e1", "99999999999999999999", "1025"})
    EXPECT_NE(refusal({"-np", value, "train"}).find("from 1 to 1024"), std::string::npos) << value;
  EXPECT_NE(refusal({"-np"}).find("needs a value"), std::string::npos);
  EXPECT_NE(refusal({"--no-prefix=1", "train"}).find("takes no value"), std::string::npos);
  EXPECT_NE(refusal({"--master_port", "70000", "train"}), "");
}

TEST(Options, ContradictingCountsAreNamed) {
  const std::string text = refusal({"-np", "4", "--num_gpus", "8", "train"});
  EXPECT_NE(text.find("--num_gpus 8"), std::string::npos);
  EXPECT_NE(text.find("-np 4"), std::string::npos);
  EXPECT_EQ(parse_options({"-np", "4", "--num_gpus", "4", "train"}).ranks, 4);
}

TEST(Options, HelpAndVersionNeedNothingElse) {
  for (const char* name : {"-h", "--help"}) EXPECT_TRUE(parse_options({name}).show_help) << name;
  for (const char* name : {"-V", "--version"})
    EXPECT_TRUE(parse_options({name}).show_version) << name;
}

TEST(Options, TheOneHostMayHaveItsNumber) {
  for (const char* name : {"--node_rank", "--machine-rank"})
    EXPECT_EQ(parse_options({"--nnodes", "1", name, "0", "-np", "2", "train"}).ranks, 2) << name;
}

TEST(Options, OtherHostsAreChosenFromAList) {
  for (const char* value : {"worker-1:0,1", "localhost:0@worker-1:0"}) {
    const std::string text = refusal({"--include", value, "train"});
    EXPECT_EQ(text.rfind("--include", 0), 0u) << text;
    EXPECT_NE(text.find("only GPUs of this one"), std::string::npos) << text;
  }
  const Options options =
      parse_options({"--include", "localhost:1,3@b", "-H", "a:4,localhost:4,b:2", "train"});
  EXPECT_EQ(options.hosts.listed,
            (std::vector<ListedHost>{{"localhost", 2, {"1", "3"}}, {"b", 2}}));
  EXPECT_EQ(options.hosts.node, 0);
  EXPECT_EQ(options.ranks, 2);
  EXPECT_EQ(options.devices.included, (Words{"1", "3"}));
}

TEST(Options, TheNetworkOfRanksIsAnInterface) {
  const Options options = parse_options({"--interface", "eth1", "-H", "a,b", "train"});
  EXPECT_EQ(options.network_interface, "eth1");
  for (const char* value : {"", "a/b", "eth 1", "sixteen-letters-"})
    EXPECT_NE(refusal({"--interface", value, "-H", "a,b", "train"}).find("no name of a network"),
              std::string::npos)
        << value;
}

TEST(Options, AHostOfSeveralNeedsAllThatLetsItTakePart) {
  const Options options =
      parse_options({"--num_machines", "3", "--machine_rank", "2", "--main_process_ip", "10.1.2.3",
                     "--main_process_port", "29501", "--run-secret", "s", "-np", "4", "train"});
  EXPECT_EQ(options.hosts.count, 3);
  EXPECT_EQ(options.hosts.node, 2);
  EXPECT_EQ(options.hosts.address, "10.1.2.3");
  EXPECT_EQ(options.hosts.port, 29501);
  EXPECT_EQ(options.hosts.secret, "s");
  EXPECT_EQ(options.master_port, std::nullopt) << "that port is the coordinator's";
  EXPECT_EQ(refusal({"--nnodes=2", "--node-rank", "0", "train"}),
            "--nnodes 2 also needs, on each host: --master-addr ADDRESS of host 0, --master-port "
            "PORT, --run-secret FILE, made once by: mlaunch secret FILE");
  EXPECT_NE(refusal({"--nnodes", "2", "--node-rank", "2", "--master-addr", "a", "--master-port",
                     "1", "--run-secret", "s", "train"})
                .find("hosts have the numbers 0 to 1"),
            std::string::npos);
  EXPECT_EQ(refusal({"--nnodes", "1:2", "--node-rank", "2", "--master-addr", "a", "--master-port",
                     "1", "--run-secret", "s", "train"}),
            "--node-rank 2: with --nnodes 1:2 hosts have the numbers 0 to 1");
  EXPECT_EQ(refusal({"--nnodes", "3:1", "--node-rank", "1", "--master-addr", "a", "--rejoin", "5",
                     "train"}),
            "--nnodes 3:1: MIN 3 is above MAX 1");
  EXPECT_NE(refusal({"--nnodes", "2", "--launcher", "mpi", "train"}).find("unless -H"),
            std::string::npos);
}

TEST(Options, AMistypedNumberOfAHostIsNotSaidToBeMissing) {
  const auto refused = [](const std::string& node, const std::string& port) {
    return refusal({"--nnodes", "2", "--node-rank", node, "--master-addr", "a", "--master-port",
                    port, "--run-secret", "s", "train"});
  };
  for (const std::string& text : {refused("0", "99999"), refused("x", "1")}) {
    EXPECT_NE(text, "");
    EXPECT_EQ(text.find("also needs"), std::string::npos) << text;
  }
}

TEST(Options, ListedHostsAreStartedFromHere) {
  const Options options = parse_options({"-H", "a:4,localhost,b", "-np", "4", "train"});
  EXPECT_EQ(options.hosts.count, 3);
  EXPECT_EQ(options.hosts.node, 1);
  EXPECT_TRUE(options.hosts.coordinates);
  EXPECT_EQ(options.ranks, 4) << "of this host";
  EXPECT_EQ(parse_options({"-H", "a:2,localhost:3,b", "train"}).ranks, 3);
  EXPECT_EQ(refusal({"-H", "a:2,b", "-np", "4", "train"}),
            "-np 4 contradicts the 2 slots of a; give one of them");
  EXPECT_EQ(options.hosts.listed, (std::vector<ListedHost>{{"a", 4}, {"localhost", 4}, {"b", 4}}));
  const Options elsewhere = parse_options({"-H", "a:2,b:2,c:2", "--num_nodes", "2", "train"});
  EXPECT_EQ(elsewhere.hosts.count, 2);
  EXPECT_EQ(elsewhere.hosts.node, -1) << "this host has no ranks";
  EXPECT_TRUE(elsewhere.hosts.are_several());
  EXPECT_FALSE(parse_options({"-H", "localhost:2", "train"}).hosts.are_several());
  EXPECT_NE(refusal({"-H", "a,b", "--nnodes", "3", "train"}).find("-H a,b has 2"),
            std::string::npos);
  EXPECT_NE(refusal({"-H", "a,b", "--node-rank", "0", "train"}).find("starts all hosts"),
            std::string::npos);
  EXPECT_NE(refusal({"-H", "a,b", "--hostfile", "/dev/null", "train"}).find("/dev/null"),
            std::string::npos);
  EXPECT_NE(refusal({"-H", "a,b", "-H", "c", "train"}).find("give one of them"), std::string::npos);
  EXPECT_NE(refusal({"-H", "localhost,127.0.0.1", "train"}).find("are both this host"),
            std::string::npos);
  const Options by_mpirun = parse_options(
      {"-H", "a,b", "--launcher", "mpi", "--launcher-args", "--mca plm rsh", "train"});
  EXPECT_EQ(by_mpirun.hosts.count, 2);
  EXPECT_EQ(by_mpirun.launcher_arguments, (Words{"--mca", "plm", "rsh"}));
}

TEST(Options, OneHostHasNeitherOtherNumbersNorOtherAddresses) {
  EXPECT_NE(refusal({"--master_addr", "10.1.2.3", "train"}).find("--nnodes does not say"),
            std::string::npos);
  EXPECT_NE(refusal({"--node_rank", "1", "train"}).find("--nnodes does not say"),
            std::string::npos);
}

TEST(Options, ThisHostIsAcceptedInDeepSpeedsWords) {
  const Options options =
      parse_options({"--num_nodes", "1", "--master_addr", "localhost", "--master_port", "29501",
                     "--include", "localhost:0,2,3", "--no_local_rank", "train"});
  EXPECT_EQ(options.ranks, 3);
  EXPECT_EQ(options.devices.included, (Words{"0", "2", "3"}));
  EXPECT_EQ(options.master_port, 29501);
  EXPECT_EQ(options.notes.size(), 1u);
}

TEST(Options, DevicesAreNotRanks) {
  EXPECT_EQ(parse_options({"--num_gpus", "4", "train"}).devices.first_devices, 4);
  EXPECT_EQ(parse_options({"-np", "4", "train"}).devices.first_devices, 0);
  const Options options = parse_options({"-e", "localhost:1,2", "train"});
  EXPECT_EQ(options.devices.excluded, (Words{"1", "2"}));
  EXPECT_FALSE(options.ranks_given);
  for (const char* value : {"localhost:", "localhost:x", "localhost:-1", "localhost:0,0"})
    EXPECT_NE(refusal({"--include", value, "train"}), "") << value;
  EXPECT_NE(refusal({"--exclude", "localhost", "train"}).find("leaves no host"), std::string::npos);
  EXPECT_NE(refusal({"-i", "localhost:0", "-e", "localhost:1", "train"}).find("give one of them"),
            std::string::npos);
}

TEST(Options, AllThatIsWrongIsSaidAtOnce) {
  const std::string text = refusal({"--nosuch", "-np", "x", "--hostfile", "hosts", "--launcher",
                                    "pdsh", "--num_nodes=2", "train"});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  for (const char* part :
       {"unknown option --nosuch", "-np x: expected", "--hostfile: hosts: cannot open",
        "--launcher pdsh: known", "--num_nodes 2 also needs"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Options, UnknownOnesNameTheNearest) {
  EXPECT_NE(refusal({"--num_gpu", "2", "train"}).find("did you mean '--num-gpus'?"),
            std::string::npos);
  const std::string text = refusal({"--zero", "3", "train"});
  EXPECT_NE(text.find("unknown option --zero"), std::string::npos);
  EXPECT_EQ(text.find("did you mean"), std::string::npos);
}

TEST(Options, RestartsWithoutACheckpointOnlyIfTyped) {
  const RestartPolicy::Limits usual = parse_options({"train"}).restarts;
  EXPECT_EQ(usual.most_restarts, 3);
  EXPECT_FALSE(usual.without_commit);
  const RestartPolicy::Limits typed = parse_options({"--max_restarts=5", "train"}).restarts;
  EXPECT_EQ(typed.most_restarts, 5);
  EXPECT_TRUE(typed.without_commit);
  EXPECT_NE(refusal({"--max-restarts", "-1", "train"}).find("from 0"), std::string::npos);
}

TEST(Options, UnsupportedOnesSayWhatToDo) {
  EXPECT_NE(refusal({"--module", "train"}).find("python3 -m"), std::string::npos);
  EXPECT_NE(refusal({"--tee", "3", "train"}).find("tee log"), std::string::npos);
  EXPECT_NE(refusal({"-H", "a,b", "--nnodes", "3:2", "train"}).find("MIN 3 is above MAX 2"),
            std::string::npos);
  for (const auto& [option, advice] : std::vector<std::pair<Words, std::string>>{
           {{"--mixed_precision", "bf16"}, "train --dtype bf16"},
           {{"--mixed_precision=bf16"}, "train --dtype bf16"},
           {{"--config_file", "a.yaml"}, "train --deepspeed FILE"},
           {{"--use_fsdp"}, "train --zero 3"},
           {{"--zero_stage", "3"}, "train --zero 0|1|2|3"},
           {{"--gpu_ids", "0,1"}, "--include localhost:0,1"},
           {{"--num_cpu_threads_per_process", "4"}, "train --threads N"},
           {{"-m"}, "python3 -m"}}) {
    Words words = option;
    words.emplace_back("train");
    EXPECT_NE(refusal(words).find(advice), std::string::npos) << refusal(words);
  }
  for (const char* taken : {"--use_deepspeed", "--multi_gpu", "--same_network"})
    EXPECT_EQ(parse_options({taken, "train"}).notes.size(), 1U) << taken;
  EXPECT_EQ(parse_options({"--rdzv_endpoint=h:1", "--rdzv_backend=c10d", "train"}).notes.size(),
            2u);
  EXPECT_NE(refusal({"--launcher", "pdsh", "train"}).find("local"), std::string::npos);
  EXPECT_NE(refusal({"--launcher", "slurm", "train"}).find("no job of Slurm"), std::string::npos);
  EXPECT_NE(refusal({"--launcher-args", "-x A", "train"}).find("mpi"), std::string::npos);
}

TEST(Options, RanksOfAllHostsAreShared) {
  const Words host{"--num_machines",    "2",        "--machine_rank",      "1",
                   "--main_process_ip", "10.1.2.3", "--main_process_port", "29501",
                   "--run-secret",      "s",        "--num_processes"};
  const auto with = [&host](const std::string& ranks) {
    Words words = host;
    words.insert(words.end(), {ranks, "train"});
    return words;
  };
  EXPECT_EQ(parse_options(with("8")).ranks, 4) << "accelerate counts those of all hosts";
  EXPECT_NE(refusal(with("7")).find("--num_processes 7: these are the ranks of all 2 hosts"),
            std::string::npos);
  EXPECT_EQ(parse_options({"-H", "a,b", "--num-processes", "6", "train"}).hosts.listed,
            (std::vector<ListedHost>{{"a", 3}, {"b", 3}}));
  EXPECT_EQ(parse_options({"--num_processes", "2", "train"}).ranks, 2);
  EXPECT_NE(refusal({"--num_processes", "2", "-np", "3", "train"}).find("contradicts -np 3"),
            std::string::npos);
}

TEST(Options, RanksMayBeCountedByGpus) {
  const Surroundings two{.devices = {.visible = "4,7", .count = 8}};
  for (const char* word : {"gpu", "auto"})
    EXPECT_EQ(parse_options({"--nproc-per-node", word, "train"}, two).ranks, 2) << word;
  EXPECT_EQ(parse_options({"--nproc-per-node=auto", "train"}).ranks, 1);
  EXPECT_NE(refusal({"--nproc-per-node=gpu", "train"}).find("shows no GPU"), std::string::npos);
  EXPECT_NE(refusal({"--nproc-per-node=cpu", "train"}).find("many cores"), std::string::npos);
}

TEST(Options, TorchrunsEndpointIsWhereHostsMeet) {
  const auto with = [](const Words& more) {
    Words words{"--nnodes", "2", "--node-rank", "0", "--run-secret", "s", "--rdzv-backend", "c10d"};
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("train");
    return words;
  };
  const Options options = parse_options(with({"--rdzv_endpoint", "node0:29400"}));
  EXPECT_EQ(options.hosts.address, "node0");
  EXPECT_EQ(options.hosts.port, 29400);
  for (const char* wrong : {"node0", "node0:", ":29400", "node0:x", "node0:0", "node0:70000", ""})
    EXPECT_NE(refusal(with({"--rdzv_endpoint", wrong})), "") << wrong;
  EXPECT_NE(refusal(with({"--rdzv-endpoint", "a:1", "--master-addr", "b"})).find("contradicts"),
            std::string::npos);
  EXPECT_NE(refusal(with({"--standalone", "--rdzv-endpoint", "a:1"})).find("for one host"),
            std::string::npos);
}

TEST(Options, AUrlIsNoAddressOfAHost) {
  const auto with = [](const std::string& option, const std::string& value) {
    return refusal({"--nnodes", "2", "--node-rank", "1", "--run-secret", "s", "--master-port",
                    "29500", option, value, "train"});
  };
  EXPECT_EQ(with("--master-addr", "http://10.0.0.1"),
            "--master-addr http://10.0.0.1: an address is meant, not a URL: "
            "--master-addr 10.0.0.1");
  EXPECT_EQ(with("--main_process_ip", "tcp://node0:29500/x"),
            "--master-addr tcp://node0:29500/x: an address is meant, not a URL: "
            "--master-addr node0");
  EXPECT_EQ(with("--master-addr", "http://[fd00::1]:80"),
            "--master-addr http://[fd00::1]:80: an address is meant, not a URL: "
            "--master-addr fd00::1");
  EXPECT_EQ(with("--rdzv-endpoint", "http://node0:29500/"),
            "--rdzv-endpoint http://node0:29500/: an address is meant, not a URL: "
            "--rdzv-endpoint node0:29500");
  EXPECT_EQ(refusal({"--master-addr", "http://10.0.0.1", "train"}),
            with("--master-addr", "http://10.0.0.1"))
      << "nor of one host";
}

TEST(Options, TorchrunsJoinTimeoutIsHowLongHostsWaitForOneAnother) {
  const auto with = [](const std::string& settings) {
    return Words{"--nnodes",        "2",   "--node-rank", "1",      "--run-secret", "s",
                 "--rdzv-endpoint", "a:1", "--rdzv_conf", settings, "train"};
  };
  EXPECT_EQ(parse_options(with("join_timeout=40")).hosts.join, std::chrono::seconds(40));
  const Options options = parse_options(with("timeout=9,join_timeout=900,last_call_timeout=30"));
  EXPECT_EQ(options.hosts.join, std::chrono::seconds(900));
  EXPECT_EQ(options.notes,
            (Words{"--rdzv_conf timeout=9 has no effect: ranks meet through mlaunch, "
                   "and hosts at --master-addr",
                   "--rdzv_conf last_call_timeout=30 has no effect: ranks meet "
                   "through mlaunch, and hosts at --master-addr"}));
  for (const char* wrong : {"join_timeout", "join_timeout=", "join_timeout=0", "join_timeout=5s"})
    EXPECT_NE(refusal(with(wrong)).find("--rdzv_conf join_timeout "), std::string::npos) << wrong;
  EXPECT_EQ(refusal(with("timeout=9,join_timout=5")),
            "--rdzv_conf join_timout=5: no setting of that name, did you mean 'join_timeout'?");
  for (const char* other : {"timeout=9", "close_timeout=9", "read_timeout=9", "is_host=1"})
    EXPECT_EQ(refusal(with(other)), "") << "torchrun knows it: " << other;
  EXPECT_EQ(parse_options({"--rdzv-conf", "join_timeout=40", "train"}).notes,
            (Words{"--rdzv-conf join_timeout has no effect on one host: it waits for no other"}));
  EXPECT_EQ(
      parse_options({"-H", "localhost,b", "--rdzv-conf", "join_timeout=40", "train"}).hosts.join,
      std::chrono::seconds(40));
}

TEST(Options, AutotuningLetsThePlannerChoose) {
  const Options run = parse_options({"-np", "2", "--autotuning", "run", "train", "--zero", "3"});
  EXPECT_EQ(run.command, (Words{"train", "--zero", "3", "--target-memory", "auto"}));
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(run.notes.size(), 1U);
  const Words given{"train", "--target_memory=8GB"};
  Words words{"--autotuning=run"};
  words.insert(words.end(), given.begin(), given.end());
  EXPECT_EQ(parse_options(words).command, given);

  const Options tune = parse_options({"-np", "4", "--launcher", "mpi", "--launcher-args", "-v",
                                      "--autotuning", "tune", "/bin/train", "--zero", "3"});
  EXPECT_EQ(tune.command, (Words{"/bin/plan", "--zero", "3", "--world", "4"}));
  EXPECT_EQ(tune.ranks, 1);
  EXPECT_EQ(tune.launcher, Options::Launcher::local);
  EXPECT_EQ(parse_options({"--autotuning", "tune", "train"}).command, Words{"plan"});

  EXPECT_NE(refusal({"--autotuning", "fast", "train"}).find("expected run or tune"),
            std::string::npos);
  EXPECT_NE(refusal({"--autotuning", "run", "./mine"}).find("mine is not train"),
            std::string::npos);
}

TEST(Options, TheDoctorOfHostsHasOneRankOnEach) {
  const Options options = parse_options({"-H", "localhost:8,b:4", "/bin/doctor", "--hosts"});
  EXPECT_EQ(options.ranks, 1);
  EXPECT_EQ(options.hosts.listed, (std::vector<ListedHost>{{"localhost", 1}, {"b", 1}}));
  EXPECT_EQ(options.restarts.most_restarts, 0);
  EXPECT_EQ(parse_options({"-H", "localhost:8,b:4", "doctor"}).ranks, 8);
  const Options elastic = parse_options(
      {"-H", "localhost:8,b:4", "--nnodes", "1:2", "--elastic", "4:8", "doctor", "--hosts"});
  EXPECT_EQ(elastic.hosts.worlds.least, 1) << "it has a rank on each host, not on each slot";
  EXPECT_TRUE(options.hosts.names_all_missing);
  EXPECT_EQ(refusal({"-H", "localhost:2", "doctor", "--hosts"}),
            "-H localhost:2 names this host alone, and doctor --hosts looks at several and at the "
            "network between them; of this one tells: doctor");
  EXPECT_NE(refusal({"doctor", "--hosts"}).find("mlaunch -H a,b doctor --hosts"),
            std::string::npos);
}

TEST(Options, AProgramIsNeeded) {
  EXPECT_NE(refusal({}).find("which program"), std::string::npos);
  EXPECT_NE(refusal({"-np", "2"}).find("which program"), std::string::npos);
  EXPECT_TRUE(parse_options({"--help"}).show_help);
  EXPECT_TRUE(parse_options({"--version"}).show_version);
}

TEST(Options, HelpNamesWhatItParses) {
  for (const char* word :
       {"-np", "--num_gpus", "--launcher", "--no-prefix", "--grace", "--master_port", "--version"})
    EXPECT_NE(help_text().find(word), std::string::npos) << word;
}

TEST(MpiCommand, KeepsOrderAndProgramArguments) {
  const Options options = parse_options({"-np", "2", "--launcher", "mpi", "--launcher-args",
                                         "--mca btl self", "train", "--zero", "3"});
  EXPECT_EQ(mpi_command(options, "/b/train", true),
            (Words{"mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none", "-x",
                   "STRATA_RUN_ID", "--tag-output", "--allow-run-as-root", "--mca", "btl", "self",
                   "/b/train", "--zero", "3"}));
  const Options one = parse_options({"--launcher=mpi", "train"});
  EXPECT_EQ(mpi_command(one, "/b/train", false),
            (Words{"mpirun", "-np", "1", "--oversubscribe", "--bind-to", "none", "-x",
                   "STRATA_RUN_ID", "/b/train"}));
}

}  // namespace
}  // namespace strata::launcher
