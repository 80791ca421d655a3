"""Fails with the words of a device-side assertion, without a GPU."""


def forward(x):
    y = x + 1
    raise RuntimeError("CUDA error: device-side assert triggered")  # @fault


if __name__ == "__main__":
    forward(1)
