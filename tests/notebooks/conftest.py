import pandas as pd
import pytest


@pytest.fixture(autouse=True)
def always_warm(warm_kernels):
    pass


@pytest.fixture
def own_data(thirty_rows):
    """Parameters that name own data: replies to mails, two criteria on n levels."""

    def written(n):
        folder = thirty_rows((n, n))
        files = {"path": folder / "my_data.csv", "rubric": folder / "my_rubric.yml"}
        return {"dataset": "csv"} | {name: str(file) for name, file in files.items()}

    return written


@pytest.fixture
def own_file(tmp_path):
    """Files like those that the papers used and nobody may pass on."""
    levels = {f"score{k}_description": f"Level {k}." for k in range(1, 6)}
    rubric = {"criteria": "Is it right?"} | levels
    file = tmp_path / "human_eval.parquet"
    pd.DataFrame(
        [
            {
                "capability": "planning",
                "task": "travel",
                "instance_idx": i,
                "input": f"Plan {i}.",
                "reference_answer": f"The plan {i}.",
                "score_rubric": rubric,
                "model_name": model,
                "response": f"{model} plans {i}.",
                "human_score": score,
            }
            for i in range(4)
            for model, score in (("a", 1 + i), ("b", 5))
        ]
    ).to_parquet(file)
    essays = tmp_path / "essays.csv"
    pd.DataFrame(
        [
            {
                "essay_id": f"A{i}",
                "score": 1 + i % 6,
                "assignment": "Are cars good?",
                "full_text": f"Cars, I say, must go. It says so. I have {i} reasons.",
            }
            for i in range(30)
        ]
    ).to_csv(essays, index=False)
    return {"biggen": file, "asap-2.0": essays}


@pytest.fixture
def warnings_of():
    """What an executed notebook wrote to its standard error."""
    return lambda done: [
        output.text
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]
