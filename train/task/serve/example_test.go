package serve_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
	"github.com/heed-go/heed/train/task/serve"
)

// Serve a model in your own program, next to other pages.
func Example() {
	rule := data.Rule{ // replaces every digit by 9 minus the digit
		Name: "complement", Kind: data.KindTagging, Alphabet: "0123456789", MaxLen: 4,
		Sample: func(rng *rand.Rand, _ int) string { return fmt.Sprint(rng.IntN(10000)) },
		Answer: func(source string) (string, error) {
			return strings.Map(func(digit rune) rune { return '9' - digit + '0' }, source), nil
		},
	}
	config := task.Defaults(rule)
	config.Model.Layers = 1
	config.Training.MaxEpochs = 2
	t, err := task.New(config)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "heed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if _, err := t.Train(context.Background(), dir, train.Call{}); err != nil {
		log.Fatal(err)
	}

	model, err := task.Open(dir) // in the program that serves the model
	if err != nil {
		log.Fatal(err)
	}
	handler, err := serve.New(model, serve.Options{MaxInputs: 10})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/complement/", http.StripPrefix("/complement", handler))
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello\n") })
	server := httptest.NewServer(mux) // or an http.Server with a ReadHeaderTimeout
	defer server.Close()
	defer handler.Shutdown(context.Background())

	for _, body := range []string{`{"inputs": ["2024", "x"]}`, `{"inputs": []}`} {
		answer, err := http.Post(server.URL+"/complement/predict", "application/json", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(answer.Status, " ")
		io.Copy(os.Stdout, answer.Body)
		answer.Body.Close()
	}
	// Output:
	// 200 OK {"answers":[{"answer":"7975"},{"unknown":true,"error":"task complement: source \"x\": symbol 'x' at position 0 (from 0) isn't one of the 10 known: \"0123456789\""}]}
	// 400 Bad Request {"error":"inputs must be a list of 1 to 10 texts, got 0"}
}
