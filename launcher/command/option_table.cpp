#include "launcher/command/option_table.h"

#include <algorithm>
#include <array>
#include <string>

namespace strata::launcher {
namespace {

using enum OptionUse;

constexpr std::string_view kOneByOne =
    "start mlaunch on each host with --nnodes N --node-rank R and what these need (mlaunch --help)";
constexpr std::string_view kElastic =
    "--nnodes MIN:MAX lets hosts come and go, --elastic MIN:MAX bounds the number of ranks";
constexpr std::string_view kMeet = "ranks meet through mlaunch, and hosts at --master-addr";
constexpr std::string_view kSharded =
    "say it after the program: train --zero 3 shards all, --zero 2 all but parameters";
constexpr std::string_view kAsIs = "programs are always started as they are";
constexpr std::string_view kModule = "start Python yourself: mlaunch -np N python3 -m MODULE";
constexpr std::string_view kOneLog =
    "--log-dir DIR keeps what each rank prints in files of its own, and the screen shows all; or "
    "mlaunch ... 2>&1 | tee log, then grep '^\\[3\\]' log";

constexpr auto kTable = std::to_array<OptionEntry>({
    {"-h", help, false},
    {"--help", help, false},
    {"-V", version, false},
    {"--version", version, false},
    {"-np", ranks, true},
    {"-n", ranks, true},
    {"--np", ranks, true},
    {"--num-gpus", device_count, true},
    {"--num-accelerators", device_count, true},
    {"--nproc-per-node", ranks, true},
    {"--num-processes", all_ranks, true},
    {"--launcher", launcher, true},
    {"--launcher-args", launcher_arguments, true},
    {"--no-prefix", no_prefix, false},
    {"--grace", grace, true},
    {"--master-port", master_port, true},
    {"--main-process-port", master_port, true},
    {"--master-addr", master_address, true},
    {"--main-process-ip", master_address, true},
    {"--interface", network_interface, true},
    {"--num-nodes", node_count, true},
    {"--nnodes", node_count, true},
    {"--num-machines", node_count, true},
    {"--elastic", elastic, true},
    {"--rejoin", rejoin, true},
    {"--requeue", requeue, false},
    {"--run-secret", run_secret, true},
    {"--agent", agent, false},
    {"--autotuning", autotuning, true},
    {"-i", include, true},
    {"--include", include, true},
    {"-e", exclude, true},
    {"--exclude", exclude, true},
    {"--no-python", no_effect, false, kAsIs},
    {"--no-local-rank", no_effect, false, "no --local_rank argument is passed to programs"},
    {"--log-level", no_effect, true, "mlaunch itself prints only notes and errors"},
    {"-q", no_effect, false, "mlaunch itself prints only notes and errors"},
    {"--quiet", no_effect, false, "mlaunch itself prints only notes and errors"},
    {"--bind-cores-to-rank", no_effect, false,
     "train divides the cores by itself (train --threads)"},
    {"--standalone", this_host, false},
    {"--rdzv-backend", no_effect, true, kMeet},
    {"--rdzv-endpoint", rendezvous, true},
    {"--rdzv-id", no_effect, true, kMeet},
    {"--rdzv-conf", rendezvous_settings, true, kMeet},
    {"--monitor-interval", no_effect, true, "a rank that ends is noticed at once"},
    {"--multi-gpu", no_effect, false, "-np N says how many ranks there are"},
    {"--max-restarts", max_restarts, true},
    {"--hang-timeout", hang_timeout, true},
    {"--log-dir", log_directory, true},
    {"--web", web, true},
    {"--tee", refused, true, kOneLog},
    {"-t", refused, true, kOneLog},
    {"--redirects", refused, true, kOneLog},
    {"-r", refused, true, kOneLog},
    {"--bind-core-list", refused, true, "set the cores with: taskset -c LIST mlaunch ..."},
    {"-H", host_list, true},
    {"--host", host_list, true},
    {"--hosts", host_list, true},
    {"--hostfile", hostfile, true},
    {"--node-rank", node_rank, true},
    {"--machine-rank", node_rank, true},
    {"--no-ssh", refused, false, kOneByOne},
    {"--no-ssh-check", no_effect, false, "hosts are not asked before mlaunch is started there"},
    {"--ssh-port", refused, true, "name the port of a host in ~/.ssh/config"},
    {"--force-multi", no_effect, false, "one host or several make no difference"},
    {"--venv-script", refused, true, "activate it where mlaunch is started on each host"},
    {"--module", refused, false, kModule},
    {"--save-pid", refused, false, "the shell knows it: mlaunch ... & echo $!"},
    {"--enable-each-rank-log", log_directory, true},
    {"--elastic-training", refused, false, kElastic},
    {"--min-elastic-nodes", refused, true, kElastic},
    {"--max-elastic-nodes", refused, true, kElastic},
    {"--config-file", refused, true,
     "of accelerate's file give processes and machines (--num_processes, --num_machines), and a "
     "DeepSpeed JSON after the program: train --deepspeed FILE"},
    {"--mixed-precision", refused, true, "say it after the program: train --dtype bf16|fp16|fp32"},
    {"--use-deepspeed", no_effect, false,
     "train takes --zero N or --deepspeed FILE, after its name"},
    {"--deepspeed-config-file", refused, true, "say it after the program: train --deepspeed FILE"},
    {"--deepspeed-hostfile", hostfile, true},
    {"--deepspeed-inclusion-filter", include, true},
    {"--deepspeed-exclusion-filter", exclude, true},
    {"--deepspeed-multinode-launcher", refused, true,
     "--launcher local starts hosts by ssh, --launcher mpi or slurm by mpirun or srun"},
    {"--zero-stage", refused, true, "say it after the program: train --zero 0|1|2|3"},
    {"--zero3-init-flag", no_effect, true, "there is nothing to set"},
    {"--zero3-save-16bit-model", no_effect, true, "all ranks write every checkpoint"},
    {"--offload-optimizer-device", refused, true,
     "say it after the program: train --offload-optimizer cpu|nvme"},
    {"--offload-param-device", refused, true,
     "say it after the program: train --offload-param cpu|nvme"},
    {"--gradient-accumulation-steps", refused, true,
     "say it after the program: train --accumulation N"},
    {"--gradient-clipping", refused, true, "say it after the program: train --gradient-clipping X"},
    {"--use-fsdp", refused, false, kSharded},
    {"--fsdp-sharding-strategy", refused, true, kSharded},
    {"--gpu-ids", refused, true, "--include localhost:0,1 names the GPUs of the ranks"},
    {"--cpu", refused, false, "say it after the program: train --device cpu"},
    {"--num-cpu-threads-per-process", refused, true, "say it after the program: train --threads N"},
    {"--dynamo-backend", no_effect, true, "train compiles its own steps"},
    {"--same-network", no_effect, false, kMeet},
    {"-m", refused, false, kModule},
    {"--role", no_effect, true, "all ranks do the same"},
    {"--start-method", no_effect, true, kAsIs},
    {"--local-addr", refused, true, "--interface NAME names the network of ranks"},
    {"--local-ranks-filter", refused, true, kOneLog},
});

}  // namespace

std::span<const OptionEntry> option_table() { return kTable; }

const OptionEntry* find_option(std::string_view typed) {
  std::string name(typed);
  std::replace(name.begin(), name.end(), '_', '-');
  const auto found = std::find_if(kTable.begin(), kTable.end(),
                                  [&name](const OptionEntry& entry) { return entry.name == name; });
  return found == kTable.end() ? nullptr : &*found;
}

}  // namespace strata::launcher
