package choices_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/must"
)

type shape interface{ sides() int }

type circle struct{}

type polygon struct {
	Sides int       `json:"sides"`
	Round float64   `json:"round,omitzero"`
	Color string    `json:"color,omitzero"`
	Solid bool      `json:"solid,omitzero"`
	Sizes []float64 `json:"sizes,omitzero"`
	Hole  struct {
		Width float64 `json:"width"`
	} `json:"hole,omitzero"`
	Draw   func() `json:"-"`
	hidden int
}

type own struct{ circle }

func (circle) sides() int    { return 0 }
func (p polygon) sides() int { return p.Sides + p.hidden }

var shapes = choices.Types[shape]{What: "shapes", Table: choices.Table[choices.Type[shape]]{
	choices.TypeOf[circle, shape]("circle", "round"),
	choices.TypeOf[polygon, shape]("polygon", "with corners"),
}}

func TestTable(t *testing.T) {
	numbers := choices.Table[int]{{"one", "the first", 1}, {"two", "the second", 2}}
	var names []string
	for name, about := range numbers.All() {
		names = append(names, name+": "+about)
	}
	if want := []string{"one: the first", "two: the second"}; !reflect.DeepEqual(names, want) {
		t.Errorf("All yields %q, want %q", names, want)
	}
	for name := range numbers.All() {
		if name != "one" {
			t.Error("All continues after a break")
		}
		break
	}
	if v, ok := numbers.Get("two"); v != 2 || !ok {
		t.Errorf("Get(two) = %d, %t, want 2, true", v, ok)
	}
	if v, ok := numbers.Get("three"); v != 0 || ok {
		t.Errorf("Get(three) = %d, %t, want 0, false", v, ok)
	}
	if numbers.String() != "one, two" {
		t.Errorf("the names are %q, want one, two", numbers)
	}
}

func TestJSON(t *testing.T) {
	for text, want := range map[string]shape{
		`{"kind":"circle"}`:                       circle{},
		`{"kind":"polygon","sides":3,"round":.5}`: nil, // .5 isn't JSON
		`{"kind":"polygon","sides":0}`:            polygon{},
		`{"kind":"polygon","sides":3,"color":"red","hole":{"width":2}}`: polygon{Sides: 3, Color: "red", Hole: struct {
			Width float64 `json:"width"`
		}{2}},
	} {
		got, err := shapes.Unmarshal([]byte(text))
		if (err != nil) != (want == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
		if want == nil {
			continue
		}
		if back, err := shapes.Marshal(got); err != nil || string(back) != text {
			t.Errorf("%+v: got %s, %v, want %s", got, back, err, text)
		}
	}
	for text, want := range map[string]string{
		`{"kind":"square"}`:                        `there are no shapes of kind "square": use circle, polygon`,
		`{"sides":3}`:                              "shapes must have a kind, one of circle, polygon",
		`{"kind":3}`:                               "shapes must have a kind",
		`"circle"`:                                 "shapes: ",
		`{"kind":"circle","sides":3}`:              `shapes of kind circle: unknown key "sides"`,
		`{"kind":"polygon","Sides":3}`:             `unknown key "Sides"`,
		`{"kind":"polygon","hole":{"a":1,"a":1}}`:  `"a" in "hole" is given twice`,
		`{"kind":"polygon","sides":3.5}`:           "3.5",
		`{"kind":"polygon","sides":3,"hidden": 1}`: `unknown key "hidden"`,
	} {
		must.Refuse(shapes.Unmarshal([]byte(text)))(t, want)
	}
	for _, s := range []shape{own{}, &polygon{}, nil} {
		must.Refuse(shapes.Marshal(s))(t, "only circle, polygon can, and not as pointers")
	}
}

func TestParse(t *testing.T) {
	hole := polygon{}
	hole.Hole.Width = 2.5
	for text, want := range map[string]shape{
		"circle":                                   circle{},
		"polygon":                                  polygon{},
		"polygon,sides=3":                          polygon{Sides: 3},
		"polygon,round=-1e-3,sides=3":              polygon{Sides: 3, Round: -1e-3},
		"polygon,color=red,solid=true":             polygon{Color: "red", Solid: true},
		`polygon,color="a,b=c",sides=4`:            polygon{Color: "a,b=c", Sides: 4},
		"polygon,color=light red":                  polygon{Color: "light red"},
		"polygon,color=":                           polygon{},
		"polygon,color=null":                       polygon{Color: "null"},
		"polygon,color=3px,sides=4":                polygon{Color: "3px", Sides: 4},
		"polygon,color=a=b":                        polygon{Color: "a=b"},
		"polygon,sizes=[1,2.5],sides=4":            polygon{Sizes: []float64{1, 2.5}, Sides: 4},
		`polygon,hole={"width":2.5}`:               hole,
		"polygon,solid=false,sides=0,color=[1,2]x": nil, // the color is "[1", and "2]x" isn't a field
	} {
		got, err := shapes.Parse(text)
		if (err != nil) != (want == nil) || want != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                           `there are no shapes of kind "": use circle, polygon`,
		"square":                     `there are no shapes of kind "square": use circle, polygon`,
		"Circle":                     `no shapes of kind "Circle"`,
		"circle,":                    `shapes of kind circle: expected field=value after each comma, got ""`,
		"circle,sides=3":             `shapes of kind circle: it has no fields, got "sides"`,
		"polygon,side=3":             `shapes of kind polygon: it has no field "side": use sides, round, color, solid, sizes, hole`,
		"polygon,kind=circle":        `it has no field "kind"`,
		"polygon,Draw=1":             `it has no field "Draw"`,
		"polygon,hidden=1":           `it has no field "hidden"`,
		"polygon,sides":              `expected field=value after each comma, got "sides"`,
		"polygon,sides=3,":           `got ""`,
		"polygon,solid,sides=3":      `got "solid,sides=3"`,
		"polygon,sides=3,sides=4":    "sides is given twice",
		"polygon,sides=three":        `sides can't be "three"`,
		"polygon,sides=":             `sides can't be ""`,
		"polygon,sides=3.5":          "sides can't be 3.5",
		"polygon,round=1e999":        "round can't be 1e999",
		"polygon,color=3":            "color can't be 3",
		"polygon,round=NaN":          `round can't be "NaN"`,
		`polygon,hole={"width":"a"}`: `hole.width can't be {"width":"a"}`,
		`polygon,hole={"depth":3}`:   `unknown key "depth"`,
	} {
		must.Refuse(shapes.Parse(text))(t, want)
	}
}

// FuzzParse checks that every value that Parse accepts can be written as JSON and as text, and read back from both.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"circle", "polygon,sides=3", `polygon,color="a,b",sizes=[1,2]`, "polygon,color=\xff,sides=1e1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := shapes.Parse(text)
		if err != nil {
			return
		}
		data, err := json.Marshal(v)
		if err == nil {
			data, err = shapes.Marshal(v)
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if back, err := shapes.Unmarshal(data); err != nil || !reflect.DeepEqual(back, v) && !strings.Contains(text, "[]") {
			t.Fatalf("%q: %s: got %+v, %v, want %+v", text, data, back, err, v)
		}
		choice := shapes.Choice()
		if back, err := choice.Parse(choice.Text(v)); err != nil || !reflect.DeepEqual(back, v) && !strings.Contains(text, "[]") {
			t.Fatalf("%q: %s: got %+v, %v, want %+v", text, choice.Text(v), back, err, v)
		}
	})
}
