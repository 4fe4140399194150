"""Runs windlass-agent as the conformance suite asks: agent_under_test.py PATH_OF_WINDLASS_AGENT, with WINDLASS_URL, WINDLASS_TOKEN,
WINDLASS_CA, WINDLASS_TENANT, WINDLASS_INSTANCE, WINDLASS_STATE and CASE in the environment."""
import os
import sys

if os.environ.get("CASE") != "serve":
    sys.exit(127)

state = os.environ["WINDLASS_STATE"]
identity = os.path.join(state, "worker_instance_id")
if not os.path.exists(identity):
    with open(identity, "w", encoding="utf-8") as file:
        file.write(os.environ["WINDLASS_INSTANCE"] + "\n")
with open(os.open(os.path.join(state, "token"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
    file.write(os.environ["WINDLASS_TOKEN"])
settings = os.path.join(state, "agent.toml")
with open(settings, "w", encoding="utf-8") as file:
    file.write(f"""
[scheduler]
url = "{os.environ['WINDLASS_URL']}"
[tls]
authority = "{os.environ['WINDLASS_CA']}"
[auth]
token_file = "{os.path.join(state, 'token')}"
[worker]
tenant = "{os.environ['WINDLASS_TENANT']}"
state_folder = "{state}"
""")
# Its own settings may come from WINDLASS_*, so what the suite says must not be taken for them.
environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
os.execve(sys.argv[1], [sys.argv[1], "--config", settings], environment)
