# SPDX-License-Identifier: Apache-2.0
"""A jitted training step in JAX. No NVTX: steps are found from the program's own calls, or by time."""
import argparse
import json
import time

import jax
import jax.numpy as jnp


def loss_of(parameters, data):
    x = data
    for matrix in parameters:
        x = jnp.tanh(x @ matrix)
    return jnp.mean((x - data) ** 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    keys = jax.random.split(jax.random.PRNGKey(1), 5)
    parameters = [jax.random.normal(key, (1024, 1024)) * 0.02 for key in keys[:4]]
    data = jax.random.normal(keys[4], (256, 1024))

    @jax.jit
    def update(parameters):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, data)
        return [p - 0.01 * g for p, g in zip(parameters, gradients)], loss

    times = []
    loss = None
    for _ in range(options.steps):
        begin = time.perf_counter()
        parameters, loss = update(parameters)
        loss.block_until_ready()
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"result": float(loss), "platform": jax.devices()[0].platform, "step_ms": [round(t, 5) for t in times]}))


if __name__ == "__main__":
    main()
