"""Runs a container again as a person does by hand: the same `docker run`, with one thing changed. Runs in the node.

usage: rerun.py CONTAINER [--env NAME=VALUE]... [--drop-flag NAME]... [--add-flag NAME=VALUE]... [--image IMAGE] [--drop-devices]
"""

import argparse
import http.client
import json
import re
import socket


class Engine(http.client.HTTPConnection):
    def __init__(self):
        super().__init__("localhost", timeout=60)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect("/var/run/docker.sock")


def call(method, path, body=None):
    engine = Engine()
    headers = {"Content-Type": "application/json"} if body is not None else {}
    engine.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = engine.getresponse()
    text = answer.read()
    if answer.status >= 400:
        raise SystemExit(f"{method} {path}: {answer.status} {text.decode(errors='replace').strip()}")
    return json.loads(text) if text.strip() else None


def drop_flag(words, flag):
    """Without --flag=value or --flag value, be it a word of its own or part of a shell line."""
    kept, skip = [], False
    for word in words or []:
        if skip:
            skip = False
        elif word == f"--{flag}":
            skip = True
        elif not word.startswith(f"--{flag}="):
            kept.append(re.sub(rf"\s--{re.escape(flag)}[= ]\S+", "", word))
    return kept


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("container")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--drop-flag", action="append", default=[])
    parser.add_argument("--add-flag", action="append", default=[])
    parser.add_argument("--image")
    parser.add_argument("--drop-devices", action="store_true")
    args = parser.parse_args()

    was = call("GET", f"/containers/{args.container}/json")
    config, host = was["Config"], was["HostConfig"]
    # The engine fills these in, and refuses to be given them beside a foreign network.
    for name in ("Hostname", "Domainname", "MacAddress"):
        config.pop(name, None)
    if host["NetworkMode"].startswith("container:"):
        config.pop("ExposedPorts", None)
    for pair in args.env:
        name = pair.partition("=")[0]
        config["Env"] = [e for e in config.get("Env") or [] if e.partition("=")[0] != name] + [pair]
    for flag in args.drop_flag:
        for part in ("Cmd", "Entrypoint"):
            if config.get(part):
                config[part] = drop_flag(config[part], flag)

    config["Cmd"] = (config.get("Cmd") or []) + [f"--{flag}" for flag in args.add_flag]
    if args.image:
        config["Image"] = args.image
    if args.drop_devices:
        host["Devices"] = []

    name = was["Name"].lstrip("/")
    call("DELETE", f"/containers/{was['Id']}?force=1")
    new = call("POST", f"/containers/create?name={name}", {**config, "HostConfig": host})
    call("POST", f"/containers/{new['Id']}/start")


main()
