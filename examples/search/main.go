// Search finds texts by their meaning. A published encoder makes a vector of each text, and search.Vectors finds those
// nearest to the vector of a query:
//
//	go run ./examples/search --encoder models/all-MiniLM-L6-v2 --query 'an animal makes music'
//
// For the rows of a file, heed search and task.OpenSearch do the same, and keep the vectors.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/heed-go/heed/data/search"
	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/train/model"
)

func main() { example.Main(run) }

var texts = []string{
	"A cat sleeps on the sofa.", "The dog chases a ball.", "Birds sing in the tree.", "A horse runs across the field.",
	"She bakes a loaf of bread.", "The soup needs more salt.", "He fries an egg in butter.", "We ordered pasta with cheese.",
}

func run(w io.Writer, args []string) error {
	flags, _ := example.New("search")
	encoder := flags.String("encoder", "", "the `FOLDER` of a published model that embeds texts")
	query := flags.String("query", "an animal makes music", "`TEXT` to search for")
	count := flags.Size("count", 3, len(texts), "number of texts to print")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *encoder == "" {
		return flags.Wrong(errors.New("search needs --encoder, the folder of a published model"))
	}
	nearest, err := find(*encoder, *query, *count)
	for _, m := range nearest {
		fmt.Fprintf(w, "%.3f  %s\n", m.Score, texts[m.Index])
	}
	return err
}

// find returns the texts that are nearest to a query.
func find(folder, query string, count int) ([]search.Match, error) {
	m, err := model.Open(folder)
	if err != nil {
		return nil, err
	}
	documents, _, err := m.EmbedDocuments(context.Background(), texts)
	if err != nil {
		return nil, err
	}
	queries, _, err := m.EmbedQueries(context.Background(), []string{query})
	if err != nil {
		return nil, err
	}
	vectors := search.Vectors{Dot: m.Similarity() == "dot"}
	if err := vectors.Add(documents...); err != nil {
		return nil, err
	}
	nearest, err := vectors.Nearest(count, queries...)
	if err != nil {
		return nil, err
	}
	return nearest[0], nil
}
