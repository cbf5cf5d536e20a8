/** Large definitions, with the number of their edges. */
import { capabilities } from '../engine/capabilities.ts';

export interface Shape {
  readonly name: string;
  /** Steps and items that call the capability. */
  readonly calls: number;
  readonly edges: number;
  readonly definition: object;
}

interface Step {
  readonly id: string;
  readonly depends_on?: readonly string[];
  readonly input?: object;
  readonly for_each?: object;
}

function describe(name: string, steps: readonly Step[]): object {
  return {
    pipeline: name,
    version: '1',
    steps: steps.map((step) => ({
      capability: capabilities.echo.name,
      dispatch: 'queued',
      input: { n: 1, text: 'x' },
      ...step,
    })),
    output: null,
  };
}

/** `edges` counts `depends_on` only, so no step here mentions another one that it does not also depend on. */
function shapeOf(name: string, steps: readonly Step[], calls = steps.length): Shape {
  return {
    name,
    calls,
    edges: steps.reduce((sum, { depends_on = [] }) => sum + depends_on.length, 0),
    definition: describe(name.replaceAll(/[^a-z0-9]+/g, '-'), steps),
  };
}

/** Astronomers' mosaics have this shape: images are projected, neighbours compared, one step reads all comparisons. */
export function mosaic(tasks: number, edges: number, fanIn: number): Shape {
  const images = Array.from({ length: 500 }, (_, at) => `image_${at}`);
  const pairs = Array.from({ length: fanIn }, (_, at) => `pair_${at}`);
  const tiles = Array.from({ length: tasks - images.length - fanIn - 2 }, (_, at) => `tile_${at}`);
  const steps: { id: string; depends_on: string[] }[] = [
    ...images.map((id) => ({ id, depends_on: [] })),
    ...pairs.map((id, at) => ({
      id,
      depends_on: [images[at % images.length] as string, images[(at + 1) % images.length] as string],
    })),
    { id: 'model', depends_on: pairs },
    ...tiles.map((id, at) => ({ id, depends_on: ['model', images[at % images.length] as string] })),
    { id: 'mosaic', depends_on: tiles },
  ];
  // What is left of the edges goes from other images to tiles.
  let left = edges - steps.reduce((sum, { depends_on }) => sum + depends_on.length, 0);
  const tileSteps = steps.filter(({ id }) => id.startsWith('tile_'));
  for (let at = 0; left > 0; at++, left--) {
    const image = images[(at * 7 + 3 + Math.floor(at / tileSteps.length)) % images.length] as string;
    const { depends_on } = tileSteps[at % tileSteps.length] as { depends_on: string[] };
    if (depends_on.includes(image)) left++;
    else depends_on.push(image);
  }
  return shapeOf(`mosaic of ${tasks}`, steps);
}

export function chain(steps: number): Shape {
  return shapeOf(
    `chain of ${steps}`,
    Array.from({ length: steps }, (_, at) => ({
      id: `s${at}`,
      depends_on: at === 0 ? [] : [`s${at - 1}`],
      ...(at === 0 ? {} : { input: { n: `{{ steps.s${at - 1}.output.n }}`, text: 'x' } }),
    })),
  );
}

export function items(count: number): Shape {
  return shapeOf(
    `${count} items`,
    [
      {
        id: 'each',
        for_each: { items: Array.from({ length: count }, (_, at) => at) },
        input: { n: '{{ item }}', text: 'x' },
      },
      { id: 'after', depends_on: ['each'], input: { n: '{{ steps.each.output | length }}', text: 'x' } },
    ],
    count + 1,
  );
}

/** Up to three earlier steps each, near and far, chosen by a fixed sequence. */
export function random(steps: number): Shape {
  let seed = 20_261_121;
  const next = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % below;
  };
  return shapeOf(
    `random ${steps}`,
    Array.from({ length: steps }, (_, at) => {
      const before = new Set<number>();
      for (let edge = next(4); edge > 0 && at > 0; edge--) {
        before.add(next(2) === 0 ? Math.max(0, at - 1 - next(50)) : next(at));
      }
      return { id: `s${at}`, depends_on: [...before].map((index) => `s${index}`) };
    }),
  );
}
