"""From items to judgments: the steps that every study takes, and nothing else.

1. `permutation`: an ordering is made; `frames`, `rubrics`, `validate`: what is judged.
2. `plan`: one row for each question; `cost`: what asking them costs.
3. `rendering`: a row becomes a request; `prompts`: its prompt is written.
4. `judge`: a name becomes a judge; `contract`: what an engine has to do.
5. `session`: the judge is asked once for each request; `store`: its reply is kept.
6. `parsing`, `judgments`: a reply becomes a score, and a row of the judgments frame.
7. `run`: steps 3 to 6 for what `results` has not recorded.
8. `estimates`: reads, their intervals, and the reasons for what is unknown.

No module here imports another room of the package.
"""
