package tokenizer

// A Tokenizer turns text into ids and ids into text. New makes one from texts, and Read and Open read one.
type Tokenizer interface {
	// Len returns the number of ids, including unknown and special ones. Ids are from 0 to Len − 1.
	Len() int

	// Unknown returns the id for text that the tokenizer doesn't know, or -1 if it has no such id.
	Unknown() int

	// Special returns the ids of special tokens by name, such as "<|endoftext|>". A special token marks something about
	// a text, and isn't part of it. Heed's own tokenizers have none; their unknown id isn't special, because it stands
	// for a part of the text. Callers must not change the map.
	Special() map[string]int

	// Encode returns the ids of a text. It treats the name of a special token as ordinary text. It returns an
	// *InvalidUTF8Error if text isn't UTF-8, and an *UnknownSymbolError if the tokenizer doesn't know a character and
	// has no unknown id.
	Encode(text string) ([]int, error)

	// Tokenize is like Encode, but also returns the part of the text that each id comes from. Parts are whole
	// characters, in the order of the text. They don't overlap, unless BPE splits a character: then the part of each
	// of its tokens includes the whole character. With Characters and BPE, the parts cover the text. With Tokens and
	// Words, they leave out the white space.
	Tokenize(text string, o Options) ([]Token, error)

	// Decode returns the text of ids, with U+FFFD (�) for the unknown id and names for special tokens. It returns an
	// error if an id isn't from 0 to Len − 1. The text that an id adds depends only on the id before it, except with a
	// Pipeline. If ids begin or end inside a character, the text has only some bytes of that character; a Decoder
	// returns whole characters.
	Decode(ids []int) (string, error)
}

// A Token is an id and the part of the text that it comes from, text[Start:End].
type Token struct{ ID, Start, End int }

// Options change how Tokenize reads a text.
type Options struct {
	// Special turns the names of special tokens in the text into their ids. Set it only for text from the program
	// itself, such as a chat template, and never for text from a user.
	Special bool
}

// Units says what the ids of a Tokenizer stand for.
type Units string

const (
	// Characters gives each character an id.
	Characters Units = "characters"
	// Tokens splits text at white space and drops it. Decode puts one space between tokens.
	Tokens Units = "tokens"
	// Words splits text into runs of letters, runs of digits, and single other marks, and drops white space. Combining
	// marks belong to the letter before them. A letter of Chinese, Japanese, Thai and other scripts without spaces is a
	// word. A word that New doesn't learn has the id of its lower-case form, if that has one. Decode puts one space
	// between words.
	Words Units = "words"
	// BPE is byte-pair encoding as in GPT-2. It starts with an id for each of the 256 bytes. Again and again, it gives
	// an id to the pair of neighbouring ids that is most frequent in the texts. Pairs never cross the word boundaries
	// of GPT-2's pattern. No text is unknown, and decoding the ids of a text always gives the text. If you decode only
	// a part of the ids, the text may begin or end inside a character.
	BPE Units = "bpe"
	// Published stands for the pieces of a published tokenizer, which Open opens. New can't learn one.
	Published Units = "published"
)
