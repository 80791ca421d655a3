# env: XLA_PYTHON_CLIENT_PREALLOCATE=false
# env: XLA_PYTHON_CLIENT_MEM_FRACTION=.02
import jax, jax.numpy as jnp
@jax.jit
def f(x): return jnp.outer(x, x)
y = f(jnp.ones(200_000))                                   # @fault
print(y.sum())
