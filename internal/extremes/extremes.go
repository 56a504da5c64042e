// Package extremes tests configurations with extreme numbers, such as NaN and the largest int.
package extremes

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Case is a configuration for Run to try.
type Case struct {
	config reflect.Type
	run    func(t *testing.T, own map[reflect.Type]bool)
}

// Of returns a Case that calls use with variants of the configuration valid. The function use must do what a user's
// whole program does with a configuration, and return the resulting numbers. For valid itself, use must return no
// error.
func Of[T any](valid T, use func(c T) ([]float64, error)) Case {
	run := func(t *testing.T, own map[reflect.Type]bool) {
		c := reflect.New(reflect.TypeOf(valid)).Elem() // if T is an interface, it has the type of the value inside
		c.Set(reflect.ValueOf(valid))
		use := func() ([]float64, error) { return use(c.Interface().(T)) }
		begin := time.Now()
		if err := try(time.Minute, use); err != nil {
			t.Fatalf("the valid configuration gives an error: %v", err)
		}
		limit := max(time.Second, 100*time.Since(begin))
		numbers(c, "", own, func(name string, n reflect.Value) {
			before := reflect.ValueOf(n.Interface())
			defer n.Set(before)
			for _, x := range extremes(n.Type()) {
				n.Set(x)
				if err := try(limit, use); errors.As(err, new(*failure)) {
					t.Errorf("%s of %v: %v", strings.TrimPrefix(name, "."), x, err)
				}
			}
		})
	}
	return Case{reflect.TypeOf(valid), run}
}

// Run sets every exported number of each Case's configuration, one at a time, to NaN, ±∞, −1, 0 and the extremes of its
// type. Each such configuration must give an error or finite results. It may take 100 MB and one second or, on a busy
// machine, 100 times as long as the valid configuration. If a struct has its own Case, its numbers are tried there and
// in the structs that hold it, but no further out.
//
// Run also checks the package in the working directory. Every exported struct with an exported number must have a Case.
// If users don't set a struct, put its name into results instead.
func Run(t *testing.T, results []string, cases ...Case) {
	tried := slices.Clone(results)
	own := map[reflect.Type]bool{}
	for _, c := range cases {
		tried = append(tried, within(c.config)...)
		own[c.config] = true
	}
	for _, c := range cases {
		t.Run(c.config.String(), func(t *testing.T) { c.run(t, own) })
	}
	for _, name := range structs(t) {
		if !slices.Contains(tried, name) {
			t.Errorf("no Case tries the numbers of %s: add a Case", name)
		}
	}
}

// within returns the names of a struct type and of the struct types of its fields.
func within(t reflect.Type) (names []string) {
	if t.Kind() == reflect.Struct {
		names = append(names, t.Name())
		for f := range t.Fields() {
			names = append(names, within(f.Type)...)
		}
	}
	return names
}

// A failure is an error that no configuration may cause.
type failure struct{ error }

// try returns the error of use, or a *failure if use panics, takes longer than limit or too much memory, or returns a
// number that isn't finite.
func try(limit time.Duration, use func() ([]float64, error)) error {
	done := make(chan error, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	go func() {
		defer func() {
			if x := recover(); x != nil {
				done <- &failure{fmt.Errorf("panic: %v", x)}
			}
		}()
		results, err := use()
		if i := slices.IndexFunc(results, func(x float64) bool { return x-x != 0 }); err == nil && i >= 0 {
			err = &failure{fmt.Errorf("there is no error, but result %d isn't finite: %v", i, results)}
		}
		done <- err
	}()
	select {
	case err := <-done:
		runtime.ReadMemStats(&after)
		if taken, bytes := time.Since(start), after.TotalAlloc-before.TotalAlloc; taken > limit || bytes > 100e6 {
			return &failure{fmt.Errorf("it took %v and %d bytes; its error is %v", taken, bytes, err)}
		}
		return err
	case <-time.After(10 * limit):
		return &failure{fmt.Errorf("it hasn't ended after %v", 10*limit)}
	}
}

// numbers calls visit for the exported numbers in v, also in nested structs, pointers and the first elements of slices.
// It leaves out the content of files, []byte, and below the first level also structs of the types own. It panics if it
// would miss numbers because a pointer is nil or a slice is empty.
func numbers(v reflect.Value, name string, own map[reflect.Type]bool, visit func(name string, number reflect.Value)) {
	switch kind := v.Kind(); {
	case extremes(v.Type()) != nil:
		visit(name, v)
	case kind == reflect.Struct && own[v.Type()] && strings.Count(name, ".") > 1: // its Case and the level above try it
	case kind == reflect.Struct:
		for f, value := range v.Fields() {
			if f.IsExported() && f.Type != reflect.TypeFor[[]byte]() {
				numbers(value, name+"."+f.Name, own, visit)
			}
		}
	case (kind == reflect.Pointer || kind == reflect.Slice) && has(v.Type().Elem(), 3):
		if kind == reflect.Slice && v.Len() > 0 {
			numbers(v.Index(0), name+"[0]", own, visit)
		} else if kind == reflect.Pointer && !v.IsNil() {
			numbers(v.Elem(), name, own, visit)
		} else {
			panic(name + " has numbers that aren't tried: set it in the valid configuration")
		}
	}
}

// has reports whether values of type t can contain exported numbers. It looks at most depth levels deep, and ignores
// Gorgonia's types, such as tensors and nodes.
func has(t reflect.Type, depth int) bool {
	switch kind := t.Kind(); {
	case depth == 0 || strings.HasPrefix(t.PkgPath(), "gorgonia.org/"):
		return false
	case extremes(t) != nil:
		return true
	case kind == reflect.Pointer || kind == reflect.Slice:
		return has(t.Elem(), depth)
	case kind == reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() && has(f.Type, depth-1) {
				return true
			}
		}
	}
	return false
}

// extremes returns the values to try for a type, or nil if it isn't a numeric type.
func extremes(t reflect.Type) (values []reflect.Value) {
	add := func(x any) { values = append(values, reflect.ValueOf(x).Convert(t)) }
	switch bits := 0; t.Kind() {
	case reflect.Float32, reflect.Float64:
		largest, least := math.MaxFloat64, math.SmallestNonzeroFloat64
		if t.Kind() == reflect.Float32 {
			largest, least = math.MaxFloat32, math.SmallestNonzeroFloat32
		}
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, largest, -largest, least} {
			add(x)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits = t.Bits()
		add(-1)
		add(0)
		add(int64(-1) << (bits - 1))
		add(int64(^uint64(0) >> (65 - bits)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		add(0)
		add(^uint64(0))
	}
	return values
}

// structs returns the exported structs of the package in the working directory that have an exported number.
func structs(t *testing.T) (names []string) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]ast.Expr{}
	numbers := map[string]bool{"float32": true, "float64": true, "int": true, "int32": true, "int64": true, "uint32": true, "uint64": true, "Duration": true}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && !strings.HasSuffix(file, "_test.go") {
				types[spec.Name.Name] = spec.Type
				if base, ok := spec.Type.(*ast.Ident); ok && numbers[base.Name] {
					numbers[spec.Name.Name] = true
				}
			}
			return true
		})
	}
	number := func(e ast.Expr) bool {
		for {
			switch x := e.(type) {
			case *ast.StarExpr:
				e = x.X
			case *ast.ArrayType:
				e = x.Elt
			case *ast.SelectorExpr:
				e = x.Sel
			case *ast.Ident:
				return numbers[x.Name]
			default:
				return false
			}
		}
	}
	for name, e := range types {
		if s, ok := e.(*ast.StructType); ok && ast.IsExported(name) && slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
			return number(f.Type) && slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.IsExported() })
		}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
