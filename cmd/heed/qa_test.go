package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// A published model answers questions from arguments and from files with parts of their contexts. The expected answers
// are the pipeline's: see train/model/testdata/qa.py.
func TestQuestions(t *testing.T) {
	dir, file := filepath.Join("..", "..", "train", "model", "testdata", "qa", "bert-64"), filepath.Join(t.TempDir(), "rows.jsonl")
	const input = "Where?\tBerlin café. the River house is naïve"
	prints(t, "Berlin\n", "predict", dir, input)
	must.Have(t, succeed(t, "predict", dir, input, "--json", "--top=2", "--no-answer"), `"answer":"Berlin","start":0,"end":6,"probability":0.0631`, `{"answer":"Berlin café. the River","start":0,"end":23,`)
	must.Do(t, os.WriteFile(file, []byte(`{"question": "Where is it?", "context": "Berlin café", "answers": {"text": ["café"], "answer_start": [7]}}`+"\n"), 0o666))
	must.Have(t, succeed(t, "predict", dir, "--data="+file, "--top=2"), `,"answer":"Berlin café","start":0,"end":12,"probability":0.1751,"answer_2":"Berlin","probability_2":0.1256}`)
	must.Have(t, succeed(t, "eval", dir, "--data="+file), "Exact match: 0.0000 (0 of 1 question;", "F1: 0.6667")
	must.Have(t, succeed(t, "eval", dir, "--data="+file, "--json", "--no-answer"), `"score":"exact_match","value":0,"right":0,"total":1,"unit":"questions"`, `"f1":0.66`)
	fail(t, heed("predict", dir, "Where?"), 2, "it must be a question and a context with a tab between them")
	fail(t, heed("predict", ran(t), "abc", "--no-answer"), 2, "--no-answer is for models that find answers in texts, not for the task reverse")
}
