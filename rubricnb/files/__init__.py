"""Files as people have them: tables, rubrics, logs of other tools, downloads."""
