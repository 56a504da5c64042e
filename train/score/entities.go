package score

import (
	"cmp"
	"slices"
	"strings"
)

// Entities compares the entities in sequences of tags, as the script conlleval of the CoNLL tasks does. An answered
// entity is right if the right tags have an entity of the same type at exactly the same positions.
//
// A tag is O outside of entities. Otherwise it is a prefix, a hyphen and the entity's type, such as B-PER, or a prefix
// alone if there is only one type. The prefix may also be at the end, as in PER-B. An entity is a run of tags of one
// type. It begins with the first of them, whether its prefix is B or I, so IOB1 and IOB2 are read alike. Another entity
// of the same type begins at a prefix B or S, and after a prefix E or S. M means I, L means E and U means S. Any other
// tag is outside too.
//
// For tags without prefixes, use Confusion: there, each token is its own entity, as with conlleval's option -r.
type Entities struct {
	// Others is the number of right tags that aren't O and have none of the prefixes. If it isn't 0, the tags are
	// probably not made for entities.
	Others int

	types tallies
}

// Add adds the tags of one sequence. If there are fewer answers than right tags, the missing ones are O.
func (e *Entities) Add(answer, right []string) {
	if e.types == nil {
		e.types = tallies{}
	}
	answered, _ := entities(answer)
	wanted, others := entities(right)
	e.Others += others
	for _, x := range answered {
		e.types.get(x.Type).Answers++
	}
	for _, x := range wanted {
		s := e.types.get(x.Type)
		s.Rows++
		if i, found := slices.BinarySearchFunc(answered, x, func(a, b Entity) int { return cmp.Compare(a.Start, b.Start) }); found && answered[i] == x {
			s.Right++
		}
	}
}

// Types returns the score of every type of entity, the commonest types first. Their Rows, Answers and Right count
// entities.
func (e *Entities) Types() []ClassScore {
	return e.types.sorted(func(s ClassScore) int { return s.Rows })
}

// Total returns the score of all entities together, whatever their types. Its F1 is the F1 score that conlleval prints
// in its second line, and that seqeval calls the micro average. Its Class is empty.
func (e *Entities) Total() ClassScore { return e.types.total() }

// An Entity is a run of tags, from position Start up to but not including End. Type is empty if tags have no types.
type Entity struct {
	Type       string
	Start, End int
}

// FindEntities returns the entities in a sequence of tags, in order. Entities describes the tags.
func FindEntities(tags []string) []Entity {
	found, _ := entities(tags)
	return found
}

// SplitTag returns the prefix and the type of a tag of an entity, and whether the prefix is at the end, as in PER-B.
// For any other tag, it returns empty strings. Entities describes the tags.
func SplitTag(tag string) (prefix, name string, atEnd bool) {
	if prefix, name, _ = strings.Cut(tag, "-"); prefixes[prefix] != 0 {
		return prefix, name, false
	}
	if end := strings.LastIndex(tag, "-"); end >= 0 && prefixes[tag[end+1:]] != 0 {
		return tag[end+1:], tag[:end], true
	}
	return "", "", false
}

// prefixes has the meaning of each prefix of a tag in an entity: B, I, E or S.
var prefixes = map[string]byte{"B": 'B', "I": 'I', "E": 'E', "S": 'S', "M": 'I', "L": 'E', "U": 'S'}

// entities returns the entities of a sequence in order, and the number of tags that are neither O nor of an entity.
func entities(tags []string) (found []Entity, others int) {
	before, class := byte('O'), "" // the last tag
	for i, tag := range tags {
		prefix, name, _ := SplitTag(tag)
		now := prefixes[prefix]
		if prefix == "" {
			now = 'O'
			if tag != "O" {
				others++
			}
		}
		open := before == 'B' || before == 'I'
		switch {
		case now == 'O':
		case open && name == class && (now == 'I' || now == 'E'):
			found[len(found)-1].End = i + 1
		default:
			found = append(found, Entity{name, i, i + 1})
		}
		before, class = now, name
	}
	return found, others
}
