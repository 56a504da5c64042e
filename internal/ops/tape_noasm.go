//go:build noasm || cuda

package ops

import G "gorgonia.org/gorgonia"

// runAll runs a machine in the way that every version of Gorgonia has.
func runAll(vm G.VM) error { return vm.RunAll() }
