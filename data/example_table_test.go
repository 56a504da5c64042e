package data_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/heed-go/heed/data"
)

// A file of texts with labels, and which of its rows validate.
func ExampleReadTable() {
	dir, err := os.MkdirTemp("", "heed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "reviews.csv")
	content := "Label,Text\r\ngood,\"A fine film, a \"\"classic\"\"\"\r\nbad,Too long\r\ngood,\"Fine,\r\nin two lines\"\r\n"
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		log.Fatal(err)
	}
	table, err := data.ReadTable(path, data.TableOptions{Known: [][]string{{"text", "source"}, {"label", "class"}}})
	if err != nil {
		log.Fatal(err)
	}
	for row := range table.Len() {
		text, label := table.Field(row, 0), table.Field(row, 1)
		fmt.Printf("line %d: %q is %s, held out: %v\n", table.Line(row), text, label, data.HeldOut(1, text, 0.5))
	}
	// Output:
	// line 2: "A fine film, a \"classic\"" is good, held out: false
	// line 3: "Too long" is bad, held out: false
	// line 4: "Fine,\nin two lines" is good, held out: true
}

// A file is written back with a column more, in its own form.
func ExampleOpenRecords() {
	dir, err := os.MkdirTemp("", "heed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "words.csv")
	if err := os.WriteFile(path, []byte("id;word\n1;attention\n2;\n3;\"a;b\"\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	records, err := data.OpenRecords(path, data.TableOptions{Columns: []string{"word"}})
	if err != nil {
		log.Fatal(err)
	}
	defer records.Close()
	out, err := records.NewWriter(os.Stdout, "length")
	if err != nil {
		log.Fatal(err)
	}
	word := records.Columns()[0]
	for {
		fields, _, err := records.Read()
		if err == io.EOF {
			break
		}
		length := ""
		if bad := new(data.RowError); errors.As(err, &bad) && bad.Fields != nil { // this row alone
			fields = bad.Fields
		} else if err != nil {
			log.Fatal(err)
		} else {
			length = fmt.Sprint(len(fields[word]))
		}
		if err := out.Write(append(fields, length)); err != nil {
			log.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// id;word;length
	// 1;attention;9
	// 2;;
	// 3;"a;b";3
}
