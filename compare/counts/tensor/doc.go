// Package tensor reads arrays of integers from the files of NumPy, torch.save and safetensors,
// without Python and without running anything that such a file may ask for.
//
// What is no array of integers, a list, a dictionary, a number or text is refused by
// name, by a fault (see Fault). It knows nothing of experts.
package tensor
