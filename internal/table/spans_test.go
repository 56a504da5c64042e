package table

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// Rows of programs for annotation have spans of characters, which become tags on whole words.
func TestSpans(t *testing.T) {
	known := []Column{{Role: "tokens", Names: []string{"tokens", "text"}}, {Role: "tags", Names: []string{"tags", "labels"}}}
	read := func(name, content string, columns ...string) (*Table, error) {
		path := filepath.Join(t.TempDir(), name)
		must.Do(t, os.WriteFile(path, []byte(content), 0o666))
		return Read(path, Options{Known: known, Columns: columns, Tagged: true})
	}
	for _, test := range []struct{ name, file, content, column, words, tags, note string }{
		{"doccano", "a.jsonl", `{"id": 1, "text": "Ann Lee, Кия.", "label": [[0, 7, "PER"], [9, 12, "LOC"]]}`, "", "Ann Lee , Кия .", "B-PER I-PER O B-LOC O", "2 spans in 1 text of characters became tags on whole words"},
		{"old doccano", "a.jsonl", `{"text": "An 東京 é", "labels": [[3, 5, "X Y"]]}`, "", "An 東 京 é", "O B-X_Y I-X_Y O", "1 span"},
		{"Label Studio", "a.json", `[{"id": 3, "text": "Ann sings.", "label": [{"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}]}]`, "", "Ann sings .", "B-PER O O", "1 span"},
		{"Prodigy", "a.jsonl", `{"text": "Ann sings", "tokens": [{"text": "Ann", "start": 0, "end": 3, "id": 0}], "spans": [{"start": 4, "end": 9, "token_start": 1, "label": "ACT"}], "answer": "accept"}`, "", "Ann sings", "O B-ACT", "1 span"},
		{"an empty list and spans", "a.jsonl", `{"text": "Ann sings", "label": [], "spans": [{"start": 4, "end": 9, "label": "ACT"}]}`, "", "Ann sings", "O B-ACT", "1 span"},
		{"spaCy", "a.json", "[\n[\"Ann sings\", {\"entities\": [[0, 3, \"PER\"]]}]]", "", "Ann sings", "B-PER O", "1 span"},
		{"spaCy, a pair per line", "a.jsonl", "[\"Ann sings\", {\"entities\": [[0, 3, \"PER\"]]}]\n", "", "Ann sings", "B-PER O", "1 span"},
		{"doccano with relations", "a.jsonl", `{"id": 1, "text": "Ann sings", "entities": [{"id": 7, "label": "PER", "start_offset": 0, "end_offset": 3}], "relations": [], "Comments": []}`, "", "Ann sings", "B-PER O", "1 span"},
		{"Label Studio, whole tasks", "a.json", `[
			{"id": 1, "annotations": [
				{"id": 8, "completed_by": 1, "result": [], "was_cancelled": true, "ground_truth": false},
				{"id": 9, "completed_by": 1, "result": [
					{"value": {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}, "id": "gew3t9fgkg", "from_name": "label", "to_name": "text", "type": "labels", "origin": "manual"},
					{"value": {"choices": ["good"]}, "id": "0gpIsb7s27", "from_name": "mood", "to_name": "text", "type": "choices", "origin": "manual"},
					{"from_id": "gew3t9fgkg", "to_id": "gew3t9fgkg", "type": "relation", "direction": "right"}
				], "was_cancelled": false, "lead_time": 4.288, "prediction": {}},
				{"id": 10, "result": [{"value": {"start": 4, "end": 9, "labels": ["ACT"]}, "type": "labels"}]}
			], "file_upload": "a.txt", "drafts": [], "predictions": [], "data": {"text": "Ann sings", "meta": 3}, "meta": {}, "project": 83}
		]`, "", "Ann sings", "B-PER O", "1 span in 1 text of characters became tags on whole words; 1 text with several annotations: the first counts"},
		{"Label Studio, another key", "a.json", `[{"data": {"review": "Ann sings"}, "annotations": [{"result": []}]}]`, "review,label", "Ann sings", "O O", "0 spans"},
		{"inside a word", "a.jsonl", `{"text": "Ann-Lee's 12km", "label": [[1, 6, "PER"], [10, 11, "N"]]}`, "", "Ann - Lee ' s 12 km", "B-PER I-PER I-PER O O B-N O", "2 begin or end inside a word"},
		{"overlapping", "a.jsonl", `{"text": "a b c", "label": [[2, 5, "Y"], [0, 3, "X"], [0, 5, "Z"], [1, 2, "W"]]}`, "", "a b c", "B-Z I-Z I-Z", "3 were left out"},
		{"none", "a.jsonl", `{"text": "a b", "label": []}`, "", "a b", "O O", "0 spans"},
		{"other keys", "a.jsonl", `{"body": "a b", "marks": [[0, 1, 7]], "text": "x", "label": []}`, "body,marks", "a b", "B-7 O", "1 span"},
		{"tags", "a.jsonl", `{"text": "a b", "labels": ["O", "B-X"]}`, "", "a b", "O B-X", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var columns []string
			if test.column != "" {
				columns = strings.Split(test.column, ",")
			}
			got := must.Get(read(test.file, test.content, columns...))(t)
			if got.Len() != 1 || got.Field(0, 0) != test.words || got.Field(0, 1) != test.tags || got.Spans != (test.note != "") || !strings.Contains(strings.Join(got.Notes, "; "), test.note) {
				t.Errorf("got %q, %q and %q", got.Field(0, 0), got.Field(0, 1), got.Notes)
			}
		})
	}
	for content, want := range map[string]string{
		`{"text": "a b", "label": [[0, 4, "X"]]}`:                                           "isn't a part of its text, which has 3 characters",
		`{"text": "a b", "label": [[2, 2, "X"]]}`:                                           "isn't a part of its text",
		`{"text": "a b", "label": [[-1, 2, "X"]]}`:                                          "isn't a part of its text",
		`{"text": "a b", "label": [[0, 1]]}`:                                                "a span must be a list or an object with a start, an end and one label",
		`{"text": "a b", "label": [[0, 1, " "]]}`:                                           "one label, got",
		`{"text": "a b", "label": [{"start": 0, "end": "x"}]}`:                              "one label, got",
		`{"text": "a b", "label": [{"labels": ["X", "Y"]}]}`:                                "one label, got",
		`{"text": "a b", "spans": [[0, 1, "X"]], "answer": "reject"}`:                       `its answer in Prodigy is "reject": leave it out`,
		`{"text": "a b", "label": [[0.5, 1, "X"]]}`:                                         "one label, got",
		`{"text": "a b", "entities": [{"start_offset": 0, "end_offset": 4, "label": "X"}]}`: "isn't a part of its text",
		`["a b", {"entities": [[0, 4, "X"]]}]`:                                              "isn't a part of its text",
		`["a b", {"entities": [[0, 1, {}]]}]`:                                               "one label, got",
		`["a b", {}, {}]`:                                                                   "neither a JSON object nor a text with an object",
		`{"data": {"text": "a b"}, "annotations": []}`:                                      "the task has no annotation, or only cancelled ones",
		`{"data": {"text": "a b"}, "annotations": [{"was_cancelled": true, "result": []}]}`: "the task has no annotation, or only cancelled ones",
		`{"data": {"text": "a b"}, "annotations": [{"result": 1}]}`:                         "a task of Label Studio: json: cannot unmarshal number",
		`{"data": {"text": "a b"}, "annotations": [{"result": [{"type": "labels"}]}]}`:      "one label, got",
		`{"data": {"text": "a b"}, "annotations": [{"result": [{"type": "labels", "value": {"start": 0, "end": 1.5, "labels": ["X"]}}]}]}`:    "one label, got",
		`{"data": {"text": "a b"}, "annotations": [{"result": [{"type": "labels", "value": {"start": -1, "end": 1, "labels": ["X"]}}]}]}`:     "isn't a part of its text",
		`{"data": {"text": "a b"}, "annotations": [{"result": [{"type": "labels", "value": {"start": 0, "end": 9, "labels": ["X"]}}]}]}`:      "isn't a part of its text",
		`{"data": {"text": "a b"}, "annotations": [{"result": [{"type": "labels", "value": {"start": 0, "end": 1, "labels": ["X", "Y"]}}]}]}`: "one label, got",
		`{"data": {"text": "a b"}, "annotations": [{"result": [{"type": "labels", "value": {"start": 0, "end": 1, "labels": [["X"]]}}]}]}`:    "one label, got",
		`{"text": "a b", "label": [[0, 99999999999999999999, "X"]]}`:                                                                          "one label, got",
	} {
		must.Refuse(read("b.jsonl", content))(t, want)
	}
}
