//go:build !noasm && !cuda

package ops

import (
	"reflect"
	"unsafe" // for go:linkname

	G "gorgonia.org/gorgonia"
)

// runAll does what vm.RunAll does, on the caller's goroutine. RunAll starts a goroutine for the instructions and waits
// for it on a locked thread, so each run switches threads twice. With two cores that takes about as long as a step of a
// small model. The lock and the goroutine serve devices and batched BLAS, which need the thread for their calls.
// Machines that have such work use RunAll.
//
// After the instructions, RunAll also adds to the bound gradients that are inputs of the graph. Only a machine with
// BindDualValues has bound gradients; Heed makes none.
func runAll(vm G.VM) error {
	machine, _ := vm.(interface{ WorkAvailable() <-chan bool })
	v := reflect.ValueOf(vm)
	if machine == nil || v.Kind() != reflect.Pointer || v.Type().String() != "*gorgonia.tapeMachine" || machine.WorkAvailable() != nil {
		return vm.RunAll()
	}
	errs, done := make(chan error, 1), make(chan struct{}, 1)
	runTape(v.UnsafePointer(), errs, done)
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// runTape runs all instructions of a *gorgonia.tapeMachine in order. It sends one value: an error, or that it is done.
// It is Gorgonia's own method, which isn't exported; tape.s has no code, but lets this declaration have no body.
//
//go:linkname runTape gorgonia.org/gorgonia.(*tapeMachine).runall
func runTape(machine unsafe.Pointer, errs chan error, done chan struct{})
