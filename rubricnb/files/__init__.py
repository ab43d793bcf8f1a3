"""Files as people have them: tables, rubrics, logs of other tools, downloads.

* `tables`, `logs`: a file, or another tool's log, becomes one raw table;
* `reading`: what it means is decided, asked and kept;
* `cells`, `people`, `repeats`: its scores, ratings and repeated rows are understood;
* `elsewhere`, `own`: judgments, and items to judge, are made of it;
* `rubrics`: a rubric of one's own; `outputs`: what may be written where;
* `fetch`: a file of the internet, by its hash.
"""
