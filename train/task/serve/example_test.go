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
	"regexp"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
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
	if _, err := t.Train(context.Background(), dir, train.RunOptions{}); err != nil {
		log.Fatal(err)
	}

	model, err := model.Open(dir) // in the program that serves the model
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

	for _, body := range []string{`{"input": ["2024", "x"]}`, `{"input": []}`} {
		answer, err := http.Post(server.URL+"/complement/predict", "application/json", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			log.Fatal(err)
		}
		answer.Body.Close()
		probability := regexp.MustCompile(`(0\.9)[0-9]+`) // its digits depend on the processor
		fmt.Print(answer.Status, " ", probability.ReplaceAllString(string(text), "$1"))
	}
	// Output:
	// 200 OK {"answers":[{"input":"2024","answer":"7975","probability":0.9},{"input":"x","unknown":true,"error":"task complement: source \"x\": symbol 'x' at position 0 (from 0) isn't one of the 10 known: \"0123456789\""}]}
	// 400 Bad Request {"error":"input must be a text, or a list of 1 to 10 texts, got 0"}
}
