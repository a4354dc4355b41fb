// Where the boxes of a graph go: in waves, each behind all that it waits for, ordered so that few lines cross.

export interface Layout { wave: number[]; place: number[]; waves: number[][] }

// Beyond so many boxes more sweeps cost more than they mend.
const sweeps = 4;

export function layout(deps: number[][]): Layout {
  const n = deps.length;
  const wave = depths(deps);
  const waves: number[][] = [];
  for (let i = 0; i < n; i++) (waves[wave[i]] ??= []).push(i);
  const uses: number[][] = deps.map(() => []);
  deps.forEach((list, i) => list.forEach((d) => uses[d].push(i)));
  const place = new Array<number>(n).fill(0);
  const settle = (order: number[]) => order.forEach((i, k) => (place[i] = k - (order.length - 1) / 2));
  waves.forEach(settle);
  let best = waves.map((w) => [...w]), fewest = crossings(waves, deps, wave, place);
  for (let s = 0; s < sweeps && fewest > 0; s++) {
    const down = s % 2 === 0;
    for (const order of down ? waves : [...waves].reverse()) {
      const at = new Map(order.map((i) => [i, median((down ? deps : uses)[i].map((d) => place[d]), place[i])]));
      order.sort((a, b) => at.get(a)! - at.get(b)! || place[a] - place[b]);
      settle(order);
    }
    const now = crossings(waves, deps, wave, place);
    if (now < fewest) (fewest = now), (best = waves.map((w) => [...w]));
  }
  best.forEach(settle);
  return { wave, place, waves: best };
}

// depths returns the wave of each box: one behind the last of those that it waits for.
export function depths(deps: number[][]): number[] {
  const wave = new Array<number>(deps.length).fill(0), open = deps.map((d) => d.length);
  const uses: number[][] = deps.map(() => []);
  deps.forEach((list, i) => list.forEach((d) => uses[d].push(i)));
  const ready = open.flatMap((n, i) => (n ? [] : [i]));
  for (let k = 0; k < ready.length; k++) {
    for (const i of uses[ready[k]]) {
      wave[i] = Math.max(wave[i], wave[ready[k]] + 1);
      if (!--open[i]) ready.push(i);
    }
  }
  return wave;
}

function median(list: number[], otherwise: number): number {
  if (!list.length) return otherwise;
  list.sort((a, b) => a - b);
  return (list[(list.length - 1) >> 1] + list[list.length >> 1]) / 2;
}

// crossings counts lines between neighbouring waves that cross.
function crossings(waves: number[][], deps: number[][], wave: number[], place: number[]): number {
  let all = 0;
  for (let w = 1; w < waves.length; w++) {
    const ends: number[] = [];
    for (const i of waves[w]) {
      const from = deps[i].filter((d) => wave[d] === w - 1).map((d) => Math.round(place[d] + waves[w - 1].length / 2));
      ends.push(...from.sort((a, b) => a - b));
    }
    all += inversions(ends, waves[w - 1].length + 1);
  }
  return all;
}

// inversions counts pairs that are the wrong way round, by a tree of sums.
function inversions(list: number[], size: number): number {
  const tree = new Array<number>(size + 2).fill(0);
  let all = 0;
  list.forEach((x, k) => {
    let before = 0;
    for (let i = x + 1; i > 0; i -= i & -i) before += tree[i];
    all += k - before;
    for (let i = x + 1; i < tree.length; i += i & -i) tree[i]++;
  });
  return all;
}
