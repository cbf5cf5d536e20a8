import { Client, Connection } from '@temporalio/client';
import { createBareSide } from './bare-side.ts';
import type { Endpoints } from './capabilities.ts';
import { connectCapstan } from './capstan-api.ts';
import { createCapstanSide, type Variant } from './capstan-side.ts';
import { createDbosSide } from './dbos-side.ts';
import { createRestateSide } from './restate-side.ts';
import { watchRunEnds } from './run-ends.ts';
import type { Side, SideName } from './side.ts';
import type { CapstanAddresses, Stack } from './stack.ts';

export interface ConnectedSides {
  /** They are in the order of the columns. */
  readonly sides: readonly Side[];
  close(): Promise<void>;
}

type Named = readonly (readonly [SideName, Variant])[];

/** The sides of one checkout, which share its API and one connection to its database. */
async function connectCheckout(
  { client, endpoints }: { readonly client: Client; readonly endpoints: Endpoints },
  { apiUrl, apiKey, databaseUrl, processes }: CapstanAddresses,
  named: Named,
): Promise<ConnectedSides> {
  const api = await connectCapstan({ apiUrl, apiKey }, endpoints);
  const ends = await watchRunEnds(databaseUrl);
  const sides: Side[] = [];
  const shared = { processes, api, client, ends, endpoint: endpoints.echo };
  for (const [name, variant] of named) sides.push(await createCapstanSide({ ...shared, name, variant }));
  return { sides, close: () => ends.close() };
}

const variants: Named = [
  ['capstan', 'unset'],
  ['queued', 'queued'],
];
const variantsBeside: Named = [
  ['beside', 'unset'],
  ['beside queued', 'queued'],
];

export async function connectSides(stack: Stack, names: readonly SideName[]): Promise<ConnectedSides> {
  const connection = await Connection.connect({ address: stack.temporalAddress });
  const client = new Client({ connection });
  const to = { client, endpoints: stack.endpoints };
  const chosen = (all: Named): Named => all.filter(([name]) => names.includes(name));
  const own = await connectCheckout(to, stack.capstan, chosen(variants));
  const beside =
    stack.beside === null ? null : await connectCheckout(to, stack.beside, chosen(variantsBeside));
  const dbos = stack.dbos === null ? null : await createDbosSide(stack.dbos);
  const sides = [
    ...own.sides,
    ...(beside?.sides ?? []),
    createBareSide(client, 'bare'),
    ...(names.includes('floor') ? [createBareSide(client, 'floor')] : []),
    ...(stack.restate === null ? [] : [createRestateSide(stack.restate)]),
    ...(dbos === null ? [] : [dbos]),
  ];
  return {
    sides,
    close: async () => {
      await dbos?.close();
      await beside?.close();
      await own.close();
      await connection.close();
    },
  };
}
