#!/usr/bin/env bash
# A Slurm cluster of one node for as long as a command runs: slurm.sh FOLDER COMMAND...
# It has daemons, sockets and files of its own; it needs root and Debian's slurmctld, slurmd and munge.
# Exit code 77 and one line say why it cannot start.
set -uo pipefail
folder=$1
shift
cannot() { echo "skipped: slurm, $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || cannot "it needs root"
for program in munged slurmctld slurmd srun; do
  PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || cannot "$program is not installed (Debian: slurmctld slurmd slurm-client munge)"
done
export PATH=$PATH:/usr/sbin SLURM_CONF=$folder/slurm.conf
mkdir -p "$folder/state" "$folder/spool" && chmod 700 "$folder"
host=$(hostname -s)
read -r controller daemon < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for each in sockets: each.bind(("127.0.0.1", 0))
print(*[each.getsockname()[1] for each in sockets])')

head -c 128 /dev/urandom >"$folder/key" && chmod 400 "$folder/key"
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$controller
SlurmdPort=$daemon
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
CryptoType=crypto/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SchedulerType=sched/builtin
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
CONF

pids=()
# A daemon with a step that lingers does not end when asked: after a while it is made to, and its steps with it.
stop() {
  local pid process
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
  for _ in $(seq 20); do
    [ -z "$(jobs -rp)" ] && break
    sleep 0.1
  done
  for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done
  for process in /proc/[0-9]*; do
    [ "$(cat "$process/comm" 2>/dev/null)" = slurmstepd ] || continue
    if tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qF "$folder"; then kill -9 "${process#/proc/}"; fi
  done
}
trap stop EXIT
munged --foreground --force --num-threads=1 --key-file="$folder/key" --socket="$folder/munge.socket" --seed-file="$folder/seed" \
  --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" >"$folder/munged.out" 2>&1 &
pids+=($!)
for _ in $(seq 50); do [ -S "$folder/munge.socket" ] && break; sleep 0.1; done
slurmctld -D -i >"$folder/slurmctld.out" 2>&1 &
pids+=($!)
slurmd -D -N "$host" >"$folder/slurmd.out" 2>&1 &
pids+=($!)
for _ in $(seq 100); do
  sinfo -h -o %T 2>/dev/null | grep -qE '^(idle|mixed)' && break
  sleep 0.2
done
sinfo -h -o %T 2>/dev/null | grep -qE '^(idle|mixed)' ||
  cannot "its daemons do not come up here ($(tail -n 1 "$folder/slurmctld.log" "$folder/slurmd.log" "$folder/munged.out" 2>/dev/null | tr '\n' ' '))"
"$@"
