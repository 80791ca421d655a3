"""Tasks of mpirun or srun: rank 1 fails, and its peers lose the connection to it."""
import os
import socket
import struct
import sys
import time

rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["SLURM_PROCID"])
world = int(os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ["SLURM_STEP_NUM_TASKS"])
meeting = os.path.join(os.environ["MEETING"], "port")
print("rank", rank, "is here")
if rank == 1:
    server = socket.create_server(("127.0.0.1", 0))
    with open(meeting + ".tmp", "w") as file:
        file.write(str(server.getsockname()[1]))
    os.rename(meeting + ".tmp", meeting)
    peers = [server.accept()[0] for _ in range(world - 1)]
    for peer in peers:
        # Closed so, a connection is reset.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    [][7]  # @fault
while not os.path.exists(meeting):
    time.sleep(0.01)
with open(meeting) as file:
    peer = socket.create_connection(("127.0.0.1", int(file.read())))
peer.recv(1)
sys.exit("nobody was lost")
