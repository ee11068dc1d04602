"""One run: config, parts, training, evaluation and the files of its folder."""
