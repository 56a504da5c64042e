package task

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/search"
	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/npy"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

// A Search finds the rows of a file whose texts are nearest to a query.
type Search struct {
	Names []string // of the fields of rows; nil if the file has no header

	// Ranker, if set, is a model that can Rank. It sorts the hundred nearest rows of a query, or all that are wanted if
	// these are more, and the scores are its own.
	Ranker *model.Model

	model   *model.Model
	rows    []SearchRow
	vectors search.Vectors
}

// A SearchRow is a row of the file.
type SearchRow struct {
	Line   int      // number of its first line, from 1
	Text   string   // what queries are compared with
	Fields []string // all fields; for JSONL and CoNLL, the lines of the row as one field
}

// A SearchMatch is a row with its score.
type SearchMatch struct {
	SearchRow
	Score float32
	Err   error // why the Ranker can't read the query with the row; then there is no Score
}

// VectorsFile returns the name of the file in which OpenSearch keeps the vectors of a file's texts.
func VectorsFile(file string) string { return file + ".vectors.npy" }

// OpenSearch embeds a column of a file of rows, as EmbedFile reads it. It leaves out bad rows, such as those without a
// text. A score is what Similarity says, cosine or dot product.
//
// OpenSearch keeps the vectors in VectorsFile, which NumPy reads too, with checksums of the texts, the model and the
// vectors. If they are right, the next call needn't embed the texts. If they aren't, it embeds them again, and m.Note
// tells why. A file of that name that isn't one of Heed's stays as it is. If the vectors can't be kept, for example in
// a read-only folder, m.Note tells why, and the Search works.
//
// It returns an error if the file has no row, if the model doesn't embed texts or compares their vectors in another
// way, or if memory is short. A Search holds the texts of all rows in memory.
func OpenSearch(ctx context.Context, m *model.Model, file string) (*Search, error) {
	s, similarity := &Search{model: m}, m.Similarity()
	if wrong := m.Config.Describe().Embed; wrong != nil {
		return nil, wrong
	}
	if s.vectors.Dot = similarity == "dot"; similarity != "cosine" && !s.vectors.Dot {
		return nil, fmt.Errorf("the model's folder says that vectors are compared by similarity_fn_name %.40q: a search knows cosine and dot", similarity)
	}
	if err := s.read(file); err != nil {
		return nil, err
	}
	path := VectorsFile(file)
	sum, err := s.sum()
	if err == nil {
		err = s.load(path, sum)
	}
	if err == nil {
		return s, nil
	}
	unfit := errors.Is(err, errUnfit)
	if unfit {
		noteAll(m, path, []string{fmt.Sprintf("%v, so heed embeds the texts again", err)})
	}
	if failed := s.embed(ctx); failed != nil {
		return nil, failed
	}
	if unfit || errors.Is(err, fs.ErrNotExist) {
		err = s.save(path, sum)
	}
	if err != nil {
		noteAll(m, file, []string{fmt.Sprintf("the vectors aren't kept: %v", err)})
	}
	return s, nil
}

// read reads the rows.
func (s *Search) read(file string) error {
	records, err := openTexts(s.model, file, false)
	if err != nil {
		return err
	}
	defer records.Close()
	notes := records.Notes()
	names, lines := records.Names()
	s.Names = names
	left, size := 0, 0 // number of bad rows; bytes of the texts and the vectors
	for {
		fields, line, err := records.Read()
		switch {
		case err == io.EOF && s.rows == nil:
			return fmt.Errorf("%s has no row with a text: give a file with rows", file)
		case err == io.EOF:
			noteAll(s.model, file, notes)
			return nil
		case errors.As(err, new(*table.RowError)):
			if left++; left == 1 {
				notes = append(notes, "")
			}
			notes[len(notes)-1] = fmt.Sprintf("left out %s, the last: %v", text.Count(left, "bad row"), err)
			continue
		case err != nil:
			return err
		case lines:
			fields = fields[len(fields)-1:]
		}
		s.rows = append(s.rows, SearchRow{Line: line, Text: records.Wanted()[0], Fields: slices.Clone(fields)})
		size += 4*s.model.Config.Model.Dim + 16*len(fields) + len(strings.Join(fields, "")) // a string takes 16 bytes
		if err := memory.Check(size); err != nil {
			return fmt.Errorf("%s, line %d: %w", file, line, err)
		}
	}
}

// embed makes the vectors.
func (s *Search) embed(ctx context.Context) error {
	for rows := range slices.Chunk(s.rows, fileBatch) {
		texts := make([]string, len(rows))
		for i, row := range rows {
			texts[i] = row.Text
		}
		vectors, _, err := s.model.EmbedDocuments(ctx, texts)
		if err == nil {
			err = s.vectors.Add(vectors...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sum returns a checksum of the model and the texts.
func (s *Search) sum() (string, error) {
	model, err := s.model.Sum()
	h := sha256.New()
	io.WriteString(h, model)
	for _, row := range s.rows {
		fmt.Fprintf(h, "%d %s", len(row.Text), row.Text)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// errUnfit is the error about a file of kept vectors that can't be used.
var errUnfit = errors.New("it")

// load reads kept vectors. The error wraps errUnfit if save wrote the file, but with another sum, or if it is damaged.
func (s *Search) load(path, sum string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errForeign
	}
	if err != nil {
		return text.Reason(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return text.Reason(err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	head, _ := r.ReadSlice('\n')
	var rows, width int
	var kept, numbers string
	fmt.Sscanf(string(head[min(10, len(head)):]), "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), } # heed %s %s", &rows, &width, &kept, &numbers)
	switch {
	case string(head) != header(rows, width, kept, numbers):
		return errForeign
	case kept != sum:
		return fmt.Errorf("%w has vectors of other texts or of another model", errUnfit)
	case rows != len(s.rows) || info.Size() != int64(len(head))+int64(memory.Product(4, rows, width)):
		return fmt.Errorf("%w is damaged: it has %d bytes", errUnfit, info.Size())
	}
	v, h, row := search.Vectors{Dot: s.vectors.Dot}, sha256.New(), make([]float32, width)
	for range rows {
		err := binary.Read(io.TeeReader(r, h), binary.LittleEndian, row)
		if err == nil {
			err = v.Add(row)
		}
		if err != nil {
			return fmt.Errorf("%w is damaged: %w", errUnfit, text.Reason(err))
		}
	}
	if fmt.Sprintf("%x", h.Sum(nil)) != numbers {
		return fmt.Errorf("%w is damaged: its numbers don't fit its checksum", errUnfit)
	}
	s.vectors = v
	return nil
}

var errForeign = errors.New("the file of that name isn't one of Heed's")

// header returns the header of kept vectors with the result of sum, and a checksum of the numbers.
func header(rows, width int, sum, numbers string) string {
	return npy.Header(rows, width, "# heed "+sum+" "+numbers)
}

// save keeps the vectors in a file.
func (s *Search) save(path, sum string) error {
	write := func(w io.Writer) (err error) {
		for i := 0; i < s.vectors.Len() && err == nil; i++ {
			err = binary.Write(w, binary.LittleEndian, s.vectors.Row(i))
		}
		return err
	}
	h := sha256.New()
	write(h) // a hash has no errors
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, header(s.vectors.Len(), len(s.vectors.Row(0)), sum, fmt.Sprintf("%x", h.Sum(nil))))
		return cmp.Or(err, write(w))
	})
}

// searchQueries is the number of queries between two looks at the context. A Ranker sorts rankedRows rows.
const searchQueries, rankedRows = 1 << 7, 100

// Nearest returns, for each query, the n rows with the highest scores, highest first, or all rows if there are fewer.
// After them come the rows that the Ranker can't read.
func (s *Search) Nearest(ctx context.Context, n int, queries ...string) ([][]SearchMatch, error) {
	var nearest [][]SearchMatch
	candidates := n
	if s.Ranker != nil {
		candidates = max(n, rankedRows)
	}
	for some := range slices.Chunk(queries, searchQueries) {
		vectors, _, err := s.model.EmbedQueries(ctx, some)
		if err != nil {
			return nil, err
		}
		found, err := s.vectors.Nearest(candidates, vectors...)
		if err != nil {
			return nil, err
		}
		for i, matches := range found {
			rows := make([]SearchMatch, len(matches))
			for j, m := range matches {
				rows[j] = SearchMatch{SearchRow: s.rows[m.Index], Score: m.Score}
			}
			if s.Ranker != nil {
				if rows, err = s.rank(ctx, some[i], rows, n); err != nil {
					return nil, err
				}
			}
			nearest = append(nearest, rows)
		}
	}
	return nearest, nil
}

// rank returns the n rows that answer a query best according to the Ranker, and after them the rows that it can't read.
func (s *Search) rank(ctx context.Context, query string, rows []SearchMatch, n int) ([]SearchMatch, error) {
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = row.Text
	}
	order, _, err := s.Ranker.Rank(ctx, query, texts, n)
	sorted := make([]SearchMatch, len(order))
	for i, r := range order {
		sorted[i] = SearchMatch{rows[r.Index].SearchRow, float32(r.Score), r.Err}
	}
	return sorted, err
}
