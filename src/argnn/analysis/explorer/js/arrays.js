// Arrays as packing.py writes them: base64 of whole numbers, floats in equal steps.

const CODE_TYPES = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array };

function unpackCodes(packed) {
  const text = atob(packed.bytes);
  const raw = new Uint8Array(text.length);
  for (let k = 0; k < raw.length; k++) raw[k] = text.charCodeAt(k);
  return new CODE_TYPES[packed.type](raw.buffer);
}

function unpack(packed) {
  if (!packed) return null;
  const codes = unpackCodes(packed);
  const { low, step, shift } = packed;
  if (shift !== undefined) return Int32Array.from(codes, (code) => code + shift);
  if (Array.isArray(low)) {
    const columns = low.length;
    return Float32Array.from(codes, (code, k) => low[k % columns] + step[k % columns] * code);
  }
  const nothing = packed.type === "u8" ? 255 : 65535;
  return Float32Array.from(codes, (code) => (code === nothing ? NaN : low + step * code));
}

// Most arrays are never looked at: each is unpacked when it is first asked for.
function later(compute) {
  let found;
  return () => {
    if (found === undefined) found = compute();
    return found;
  };
}

function columnMeans(values, columns) {
  const means = new Float64Array(columns);
  const rows = values.length / columns;
  values.forEach((value, k) => {
    means[k % columns] += value / rows;
  });
  return means;
}

// The mean of the known numbers at the places that `keep` names.
function meanWhere(numbers, keep) {
  let total = 0;
  let known = 0;
  for (let k = 0; k < numbers.length; k++) {
    if (!keep(k) || Number.isNaN(numbers[k])) continue;
    total += numbers[k];
    known += 1;
  }
  return known ? total / known : NaN;
}

// The numbers below `total` in an order that looks random, and is always the same.
function mixedNumbers(total) {
  const order = new Uint32Array(total).map((_, k) => k);
  let seed = 7;
  for (let k = total - 1; k > 0; k--) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    const other = seed % (k + 1);
    [order[k], order[other]] = [order[other], order[k]];
  }
  return order;
}
