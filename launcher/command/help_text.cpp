#include <string>

#include "launcher/command/options.h"

namespace strata::launcher {

std::string help_text() {
  return R"(mlaunch starts a program as N cooperating processes ("ranks") on one machine or several, shows
what they print, and ends all of them when one fails or you press Ctrl-C.

    mlaunch [options] PROGRAM [the program's own arguments]

Examples
    mlaunch train                              one rank, everything by default
    mlaunch -np 8 train --zero 3               eight ranks that share the model's state
    mlaunch --num_gpus 8 train --deepspeed ds.json
    mlaunch -np 2 ./my_program --my-option     any program; it finds its number in $RANK
    mlaunch doctor --nvme-path /drive          what this machine can do, and what to change
    mlaunch -H a:4,b:4 train                   eight ranks on two hosts
    mlaunch -H a:4,b:4 doctor --hosts          whether these hosts can work together
    mlaunch --requeue train --resume auto      in a batch script of Slurm: on all its nodes
    mlaunch status                             your runs on this machine, and where their ranks are
    mlaunch logs -f 3                          what rank 3 prints
    mlaunch stop                               lets a run save a checkpoint and end; --now: at once
    mlaunch secret FILE                        makes the secret that hosts of a run share

PROGRAM is looked for next to mlaunch first, then in $PATH. Options of mlaunch come before it. The
words status, stop, logs and secret are no programs (mlaunch logs --help); mlaunch -- logs is one.

Options
    -np N, -n N                  number of ranks (default 1), on each host; more than cores is fine;
                                 gpu: one for each GPU of this host
    --num_gpus N                 the same, and ranks see the machine's first N GPUs
    --include localhost:2,3      a rank for each of these GPUs, which are all that ranks see; none
                                 beyond CUDA_VISIBLE_DEVICES, where that is set
    --exclude localhost:0        the same with all other GPUs
    --include a:0,2@b            with -H or --hostfile: of the listed hosts all of b, and of a ranks
    --exclude a:1                on these GPUs; or all but these
    --launcher local|mpi|slurm   what starts mlaunch on other hosts: ssh, mpirun or srun. slurm
                                 takes the nodes of the job; it is the default in a job of several
                                 nodes if nothing here says where ranks run, otherwise local is. mpi
                                 without -H or --hostfile: mlaunch hands over to Open MPI's mpirun
    --launcher-args "WORDS"      more arguments for mpirun or srun
    --requeue                    in a job of Slurm: if the run ends with 75, the job starts again
    --autotuning run|tune        run: train chooses what is not given, as with --target-memory auto;
                                 tune: plan says what it would choose, and nothing is trained
    --no-prefix                  do not put "[3] " before the lines of rank 3
    --grace SECONDS              time that ranks get after SIGTERM to save and stop (default 30);
                                 at other ends they get at most 4 s of it before they are killed
    --max-restarts N             start the ranks again after a failure, at most N times in an hour
                                 (default 3 once train has saved a checkpoint, which the ranks go
                                 on from; with this option even if nothing is saved; 0: never)
    --hang-timeout SECONDS       end ranks of Strata's programs, and start them again, if none of
                                 them gets anything done for so long (default 30; always at least
                                 five times the usual longest pause, and more before the second
                                 step and while loading, evaluating, saving and ending; ranks of
                                 any program that are stopped or frozen: after 5 s); 0: never
    --log-dir DIR                also keep what each rank prints, reports of failures, and what
                                 mlaunch did and when, in files: DIR/RUN/mlaunch.log,
                                 DIR/RUN/attempt_A/rank_R/stdout.log and so on
    --web PORT                   show the run in a browser of this host, at http://127.0.0.1:PORT
                                 (0: a free port), to its user: hosts, ranks, loss; and /metrics
                                 for Prometheus, to all users of this host
    -H a:2,b:2                   ranks on these hosts: mlaunch starts itself there, in the same
                                 folder and without a password; this host may be among them
    --hostfile FILE              the same, with a line of NAME slots=N for each host
    --interface NAME             the network of ranks on several hosts, NCCL's too: on each host the
                                 address of this interface (default: by which mlaunch gets there)
    --nnodes N                   number of hosts, each with an mlaunch that is given the same and
    --node-rank R                the number of its host, from 0: that one watches over the run. It
    --master-addr ADDRESS        listens at this address of its, as the others reach it, and this
    --master-port PORT           port; ranks of other programs than Strata's get another one
    --agent                      host 0 does not watch over the run: an mlaunch elsewhere does
    --run-secret FILE            what lets a host take part in the run: made once by mlaunch secret
                                 FILE, then brought to all hosts; keep it from others. With -H only
                                 mlaunch status, stop and logs --at HOST:PORT need one
    --nnodes MIN:MAX             hosts may come and go: the run begins with MIN or more, goes on as
                                 those that are left, from its newest checkpoint, and takes in those
                                 that come after the next; train keeps global batch and steps
    --elastic MIN:MAX            with it: how many ranks there may be (default: all that the hosts
                                 have slots for and train's global batch admits)
    --rdzv-conf join_timeout=S   time that hosts have to come at first, and that each of them waits
                                 for host 0 (default 300); other settings of torchrun do nothing
    --rejoin SECONDS             time that lost hosts have to come back when the others are too few
                                 (default 60)
    --master_port PORT           on one host: MASTER_PORT of the ranks (default: a free one), for
                                 programs that use torch.distributed; Strata itself needs no port
    -h, --help                   this text
    -V, --version                version

What you see
    With more than one rank each line starts with its rank. Standard output and standard error stay
    apart; where nobody reads them any more, the ranks go on. When a rank fails, the last lines say
    which one, how it ended, where it was, its error and what to do. mlaunch ends with that rank's
    exit code (128 + signal when it was killed). Ctrl-C ends the ranks, a second Ctrl-C kills them.
    SIGTERM lets them stop by themselves: those that save what they have and end with code 75 were
    stopped on request, and so was mlaunch. Those that have not ended when the grace is over are
    killed, which it says; its code is 75, too. A second SIGTERM ends them as Ctrl-C does. SIGUSR1
    and SIGUSR2 are passed on. Rank 0 reads mlaunch's standard input unless that is a terminal;
    other ranks read nothing.

Exit codes
    0 done   2 wrong command line   65 bad stored data   69 this machine cannot do it
    70 internal error   74 read or write error   75 stopped on request, or another rank failed
    78 configuration   93 do not restart   128+n killed by signal n (130: Ctrl-C)

Without mlaunch: mpirun -np N train ... (Open MPI), srun --mpi=pmix -n N train ..., and on one host
torchrun --nproc_per_node N --no-python train ... start ranks, too.
)";
}

}  // namespace strata::launcher
