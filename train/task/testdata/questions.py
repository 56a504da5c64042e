"""Makes questions about Debian's package list, and trains the reference library's recipe on them.

    python questions.py make SEED DIR ROWS PACKAGES  # writes train.jsonl (ROWS), valid.jsonl (50) and test.jsonl (200)
    python questions.py train MODEL DIR EPOCHS RATE  # trains MODEL as run_qa.py does, and prints exact match and F1 of test.jsonl

A context describes PACKAGES packages in sentences of varied form and order. A question asks for a value of one of them; the
answer to one question in eight isn't in the context. The rows are SQuAD's. Made with torch 2.15.0 and transformers 4.57.6.
"""
import collections
import json
import os
import random
import resource
import subprocess
import sys
import time

FORMS = dict(
    Section=(["It is in the section {}.", "Section: {}.", "{} is its section."], ["Which section is {} in?", "Where in the archive is {}?", "What is the section of {}?"]),
    Version=(["The version is {}.", "It has reached version {}.", "Version: {}."], ["Which version of {} is there?", "What version does {} have?"]),
    Maintainer=(["{} maintains it.", "Its maintainer is {}.", "Maintained by {}."], ["Who maintains {}?", "Who looks after {}?", "What is the name of the maintainer of {}?"]),
    Size=(["Installed, it takes {} kB.", "Its size is {} kB."], ["How large is {}?", "How many kilobytes does {} take?"]),
    Homepage=(["Its homepage is {}", "See {}"], ["Where is the homepage of {}?", "What is the web address of {}?"]))


def described():
    cur = {}
    for line in subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, errors="replace").stdout.splitlines() + [""]:
        if line and line[0] != " " and ":" in line:
            k, v = line.split(":", 1)
            cur[k] = v.strip()
        elif not line and cur:
            cur["Maintainer"], cur["Size"] = cur.get("Maintainer", "").split("<")[0].strip(), cur.get("Installed-Size", "")
            if all(cur.get(k) for k in FORMS) and cur.get("Description"):
                yield cur
            cur = {}


def make(seed, out, count, packages):
    rng = random.Random(seed)
    listed = sorted(described(), key=lambda p: p["Package"])
    rng.shuffle(listed)
    os.makedirs(out, exist_ok=True)
    for name, rows in (("test", 200), ("valid", 50), ("train", count)):
        with open(os.path.join(out, name + ".jsonl"), "w") as f:
            for i in range(rows):
                several = [listed.pop() for _ in range(packages)]
                asked, key = rng.choice(several), rng.choice(list(FORMS))
                missing, context, start = rng.random() < 1 / 8, "", 0
                for p in several:
                    context += rng.choice(["{} is {}. ", "The package {}: {}. ", "{} ({}). "]).format(p["Package"], p["Description"])
                    for k in rng.sample(list(FORMS), 5):
                        if p is asked and k == key:
                            if missing:
                                continue
                            form = rng.choice(FORMS[k][0])
                            start = len(context) + form.index("{}")
                            context += form.format(p[k]) + " "
                        elif rng.random() < 0.8:
                            context += rng.choice(FORMS[k][0]).format(p[k]) + " "
                answers = dict(text=[] if missing else [asked[key]], answer_start=[] if missing else [start])
                f.write(json.dumps(dict(id=f"{name}{i}", question=rng.choice(FORMS[key][1]).format(asked["Package"]), context=context.strip(), answers=answers), ensure_ascii=False) + "\n")


def read(out, name):
    return [json.loads(line) for line in open(os.path.join(out, name + ".jsonl"))]


def train(folder, out, epochs, rate):
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer, default_data_collator, get_linear_schedule_with_warmup, pipeline
    from transformers.data.metrics.squad_metrics import compute_exact, compute_f1
    torch.manual_seed(1)
    torch.set_num_threads(int(os.environ.get("THREADS", "1")))
    began = time.time()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForQuestionAnswering.from_pretrained(folder)
    features = []
    for row in read(out, "train"):
        tokens = tokenizer(row["question"], row["context"], truncation="only_second", max_length=384, stride=128, return_overflowing_tokens=True, return_offsets_mapping=True)
        for i, offsets in enumerate(tokens["offset_mapping"]):
            ids, sequence, first, last = tokens["input_ids"][i], tokens.sequence_ids(i), 0, 0
            inside = [k for k, s in enumerate(sequence) if s == 1]
            if row["answers"]["text"]:
                start = row["answers"]["answer_start"][0]
                end = start + len(row["answers"]["text"][0])
                if offsets[inside[0]][0] <= start and offsets[inside[-1]][1] >= end:
                    first = max(k for k in inside if offsets[k][0] <= start)
                    last = min(k for k in inside if offsets[k][1] >= end)
            features.append(dict(input_ids=ids, token_type_ids=tokens["token_type_ids"][i], attention_mask=[1] * len(ids), start=first, end=last))
    order, batch = random.Random(1), 16
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    steps = epochs * ((len(features) + batch - 1) // batch)
    schedule = get_linear_schedule_with_warmup(optimizer, steps // 20, steps)
    model.train()
    for epoch in range(epochs):
        order.shuffle(features)
        for i in range(0, len(features), batch):
            part = features[i:i + batch]
            width = max(len(f["input_ids"]) for f in part)
            padded = {k: torch.tensor([f[k] + [0] * (width - len(f[k])) for f in part]) for k in ("input_ids", "token_type_ids", "attention_mask")}
            loss = model(**padded, start_positions=torch.tensor([f["start"] for f in part]), end_positions=torch.tensor([f["end"] for f in part])).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step(), schedule.step(), optimizer.zero_grad()
        print(epoch, loss.item(), round(time.time() - began), "s", flush=True)
    trained = time.time() - began
    ask, exact, f1, rows = pipeline("question-answering", model=model.eval(), tokenizer=tokenizer, device="cpu"), 0, 0, read(out, "test")
    for row in rows:
        got = ask(question=row["question"], context=row["context"], handle_impossible_answer=True)["answer"]
        exact += max(compute_exact(a, got) for a in row["answers"]["text"] or [""])
        f1 += max(compute_f1(a, got) for a in row["answers"]["text"] or [""])
    print(f"{len(features)} windows: exact match {exact / len(rows):.4f}, F1 {f1 / len(rows):.4f}; {trained:.0f} s to train, {time.time() - began - trained:.0f} s to answer, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:]))
    else:
        train(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
