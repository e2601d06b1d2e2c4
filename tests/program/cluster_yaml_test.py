"""Checks the YAML of examples/07_on_a_cluster against the schemas of Kubernetes (kubernetes-validate), JobSet and Kubeflow's trainer
(kubeflow-trainer-api), in this Python or in the environment that STRATA_PEERS names."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

from programs import BIN, missing_packages

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/07_on_a_cluster"
PEERS = os.environ.get("STRATA_PEERS", "")
PYTHON = f"{PEERS}/bin/python" if PEERS else sys.executable
CHECK = """
import json, sys
import kubernetes_validate, yaml
from kubeflow_trainer_api import models

KINDS = {"JobSet": models.JobsetV1alpha2JobSet, "TrainingRuntime": models.TrainerV1alpha1TrainingRuntime, "TrainJob": models.TrainerV1alpha1TrainJob}

def unknown(given, known, where):
    if isinstance(given, dict):
        return [place for key in given for place in (unknown(given[key], known[key], f"{where}.{key}") if isinstance(known, dict) and key in known
                                                     else [f"{where}.{key}"])]
    if isinstance(given, list):
        return [place for i, one in enumerate(given) for place in unknown(one, known[i], f"{where}[{i}]")]
    return [] if str(given) == str(known) else [f"{where}: {given!r} became {known!r}"]

jobs = []
for document in yaml.safe_load_all(sys.stdin):
    model = KINDS[document["kind"]].from_dict(document)
    if lost := unknown(document, json.loads(model.to_json()), document["kind"]):
        sys.exit(f"not in the schema: {lost}")
    spec = document["spec"].get("template", {}).get("spec") or document["spec"]
    for replicated in spec.get("replicatedJobs", []):
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": replicated["name"]}, "spec": replicated["template"]["spec"]}
        kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
        jobs.append(job["spec"])
json.dump(jobs, sys.stdout)
"""


class ClusterYaml(unittest.TestCase):
    def check(self, text):
        return subprocess.run([PYTHON, "-c", CHECK], input=text, capture_output=True, text=True)

    def jobs(self, name):
        done = self.check((FOLDER / name).read_text())
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_pods_start_again_by_exit_codes(self):
        for name in ("jobset.yaml", "trainjob.yaml"):
            with self.subTest(name):
                [job] = self.jobs(name)
                [container] = job["template"]["spec"]["containers"]
                rules = {rule["action"]: rule["onExitCodes"] for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule}
                self.assertEqual({action: rule["values"] for action, rule in rules.items()}, {"FailJob": [2, 65, 78, 93], "Ignore": [75]})
                self.assertEqual({rule["containerName"] for rule in rules.values()}, {container["name"]})
                self.assertEqual(job["template"]["spec"]["restartPolicy"], "Never", "a policy of failures asks for it")

    def test_pods_are_ready_once_the_run_answers(self):
        for name in ("jobset.yaml", "trainjob.yaml"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                [job] = self.jobs(name)
                [container] = job["template"]["spec"]["containers"]
                self.assertNotIn("livenessProbe", container, "the absence of host 0 would end all")
                with socket.socket() as taken:  # nobody listens there
                    taken.bind(("127.0.0.1", 0))
                    port = taken.getsockname()[1]
                    secret, stranger = f"{folder}/secret", f"{folder}/stranger"
                    for file in (secret, stranger):
                        subprocess.run([BIN / "mlaunch", "secret", file], check=True, capture_output=True)
                    self.assertEqual(self.probe(container, secret, port), 69)
                waiting = subprocess.Popen([BIN / "mlaunch", "--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", f"--master-port={port}",
                                            f"--run-secret={secret}", "-np=1", "sleep", "1000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                try:
                    self.assertIn(b"waits at", waiting.stdout.readline())
                    self.assertEqual(self.probe(container, secret, port), 0)
                    self.assertEqual(self.probe(container, stranger, port), 78)
                finally:
                    waiting.kill()
                    waiting.communicate()

    def probe(self, container, secret, port):
        """Returns the exit code of the container's probe with another secret and port."""
        words = [word.replace("/run/strata/secret", secret).replace("strata-host-0-0.strata:29500", f"127.0.0.1:{port}")
                 for word in container["readinessProbe"]["exec"]["command"]]
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": str(port)}
        return subprocess.run(words, capture_output=True, env=environment).returncode

    def test_mlaunch_takes_the_options(self):
        [job] = self.jobs("jobset.yaml")
        [container] = job["template"]["spec"]["containers"]
        words = [word.replace("$(HOST)", "1").replace("/run/strata/secret", "nothing") for word in container["args"]]
        done = subprocess.run([str(BIN / "mlaunch"), *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("cannot read the run's secret nothing", done.stderr)

    def test_what_the_schemas_do_not_know_is_found(self):
        text = (FOLDER / "jobset.yaml").read_text()
        for wrong in (text.replace("restartPolicy", "restartsPolicy"), text.replace("maxRestarts", "mostRestarts"),
                      text.replace("completionMode: Indexed", "completionMode: [Indexed]")):
            self.assertNotEqual(self.check(wrong).returncode, 0)


if __name__ == "__main__":
    if missing := missing_packages(PYTHON, ["kubernetes_validate", "kubeflow_trainer_api", "yaml"]):
        print(f"skipped: {PYTHON} has no {', '.join(missing)}; STRATA_PEERS names an environment that has")
        sys.exit(77)
    unittest.main()
