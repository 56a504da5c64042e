package data

import "github.com/heed-go/heed/data/tokenizer"

// Settings says which files a task learns from, and how they are read. Package train/task checks them. Its function New
// sets some fields; their comments say so.
//
// For text, File is the text or, if the task begins from a published model, JSONL with conversations: see
// TextFiles.Chats. For other kinds of task, it has rows, each with a source and an answer. For seq2seq, if several rows
// have the same source, each of their answers is right.
//
// A file of rows is TSV without quoting, or CSV (RFC 4180) with commas or semicolons. Files named .tsv, .tab or .txt
// are TSV; .csv files are CSV. For other names, the first line decides. The file may be compressed with gzip; an ending
// .gz of its name doesn't count. The encoding is UTF-8, UTF-16 with a byte-order mark, or Encoding. A row has at most
// 4 MiB. Empty lines are skipped.
//
// Files named .jsonl, .ndjson or .json are JSONL: each line is an object, and its keys are the columns. The value of a
// column is a string, a number, a boolean, or an array of these without white space, which is joined with spaces. An
// array of labels makes task.New learn several labels per row: see KindMultiLabel. Other keys may have any value.
//
// For tagging, files named .conll, .conllu, .conllx, .bio, .iob, .iob2, .iobes or .bioes, and files that begin with
// -DOCSTART-, are CoNLL: each line has one token with its columns between tabs or spaces, and an empty line ends a
// sentence. A row is a sentence in tokens. The tokens are in column 1 and the tags in the last column. In .conllu and
// .conllx, they are in columns 2 and 4; multiword ranges and empty nodes are skipped. Lines with -DOCSTART- and
// comments are skipped. White space inside a token becomes "_".
//
// A row is bad if one of its columns is missing, empty (except for several labels) or not valid text, if it repeats the
// header, if it has more fields than a CSV file's header, or if the task's kind can't use its answer: tagging needs one
// tag per symbol, and regression a number. Bad rows are left out and counted; without SkipBad, it is an error if more
// than one row in a hundred is bad.
//
// The tag "for" of each field lists the sources that it belongs to: rows of one file, lines of two parallel files, a
// text, and a rule that draws examples. With another source, package train/task refuses it.
type Settings struct {
	File   string `json:"file,omitempty" for:"rows lines text"`   // path of the rows, or of the text: a file or a folder, see TextFiles
	SHA256 string `json:"sha256,omitempty" for:"rows lines text"` // checksum of the data, to detect changes; New sets it

	MoreFiles []string `json:"more_files,omitempty" for:"text"` // paths of more files or folders, which follow File in the text

	// TargetFile, if set, has the answers, and File has only sources: line n of both files is row n. Whole lines are
	// taken, without quoting. Both files must have the same number of lines.
	TargetFile string `json:"target_file,omitempty" for:"lines"`

	// ValidationFile has the validation rows. If there is a TargetFile, ValidationTargetFile has their answers. Without
	// a ValidationFile, New holds out at most about a tenth of the sources of File, with all their rows. A hash of the
	// source and the Seed chooses the sources: see Stratified. Conversations are validated in the same way.
	ValidationFile       string `json:"validation_file,omitempty" for:"rows lines text"`
	ValidationTargetFile string `json:"validation_target_file,omitempty" for:"lines"`
	ValidationSHA256     string `json:"validation_sha256,omitempty" for:"rows lines text"`

	// Stratified holds out each label's share of the sources for validation, and leaves at least one source of each
	// label for training. A source with several labels counts for the rarest of them. New sets it for classification
	// and multilabel.
	Stratified bool `json:"stratified,omitempty" for:"rows lines"`

	// Encoding is the encoding of all files that have no byte-order mark, by a name of the WHATWG Encoding Standard,
	// such as windows-1252. If it is empty, the encoding is UTF-8.
	Encoding string `json:"encoding,omitempty" for:"rows lines text"`

	// Columns are the column of sources and the column of answers, each as a name in the header or a number from 1. For
	// JSONL, they must be keys, with dots for keys of inner objects, such as translation.de, and for CoNLL, numbers. If
	// empty, New looks for usual names in the header or among the keys, such as source and target. Without such a
	// header, the file must have two columns. For classification and regression, three Columns are two texts and an
	// answer: New then sets the rule's Pairs. For text, this is the Key of TextFiles; New sets it to ChatKey if the
	// file has conversations.
	Columns []string `json:"columns,omitempty" for:"rows text"`

	// Header is "yes" if the first row is a header, and "no" if it is a row like any other. If Header is empty, the
	// first row is a header if it has usual names for both columns, or if Columns has a name. For classification, New
	// then returns an error if a first row that isn't a header has a label that no other row has. JSONL and CoNLL have
	// no header.
	Header string `json:"header,omitempty" for:"rows"`

	// Quotes is "no" if the quotes in TSV are part of its fields. If it is empty, they aren't where all fields of the
	// first row, or nearly all of a column, begin and end with quotes.
	Quotes string `json:"quotes,omitempty" for:"rows"`

	// MergeLabels is for classification. It makes labels that differ only in how they are written one label, with the
	// most frequent spelling: in case, surrounding spaces, invisible characters, Unicode's form, or as 1 and 1.0. The
	// labels of other files are merged in the same way.
	MergeLabels bool `json:"merge_labels,omitempty" for:"rows lines"`

	// Pack is "yes" if several documents or conversations share a row and don't see each other, and "no" if they don't.
	// A document is a line of a JSONL file, or another file. If Pack is empty, New sets it to "yes" if they are shorter
	// than half a row on average.
	Pack string `json:"pack,omitempty" for:"text"`

	SkipBad bool `json:"skip_bad,omitempty" for:"rows lines"` // leave out bad rows whatever their share is, unless all are bad

	// SourceUnits and TargetUnits are the units that sources and answers are split into; New guesses empty ones. Only
	// seq2seq and tagging have TargetUnits, which can't be tokenizer.Words. For text, SourceUnits is tokenizer.BPE, or
	// empty for characters. If both are tokenizer.BPE, sources and answers share one vocabulary, and one table is the
	// embedding of both and the weight of the head.
	//
	// For classification and regression, the case of tokenizer.Words doesn't matter. For tagging, they make words of
	// the tokens in a row, with a tag per word: U.S. with the tag B-LOC becomes U . S . with B-LOC I-LOC I-LOC I-LOC.
	// Answers have a tag per word, too.
	SourceUnits tokenizer.Units `json:"source_units,omitempty" for:"rows lines text"`
	TargetUnits tokenizer.Units `json:"target_units,omitempty" for:"rows lines"`

	// Tokenizers has the checksum of the run folder's tokenizer, or of its source and its target tokenizer. New sets
	// it.
	Tokenizers []string `json:"tokenizers_sha256,omitempty" for:"rows lines text"`

	// Characters and Tokens are the size of a text. Tokens is 0 if its units are characters. New sets both.
	Characters int `json:"characters,omitempty" for:"text"`
	Tokens     int `json:"tokens,omitempty" for:"text"`

	VocabSize int `json:"vocab_size,omitempty" for:"rows lines text rule"` // most ids for the units tokenizer.BPE; if 0, New chooses a number from the amount of text

	// Validation is the number of validation examples; 0 means no validation. For text and for a ValidationFile it is a
	// maximum. For held-out rows it is roughly the number of sources. If it is negative, New sets it to the number of
	// rows of the ValidationFile, or to 1,000 if there is no such file.
	Validation int `json:"validation" for:"rows lines text rule"`
}
