import { expect, test } from 'vitest';
import type { Db } from '../../../src/db/connect.ts';
import {
  type DeliveryKind,
  deliverKnownSoon,
  settleDeliveries,
} from '../../../src/parts/delivery/deliveries.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';

test('waiting messages are bounded while none is delivered, and are delivered by id alone when the line is long', async () => {
  let letThrough = (): void => undefined;
  const open = new Promise<void>((resolve) => {
    letThrough = resolve;
  });
  const told = { byId: 0, known: 0 };
  const starts: DeliveryKind<{ readonly id: number }> = {
    what: 'a start',
    due: async () => [],
    deliver: () => open.then(() => void told.byId++),
  };
  const ctx = aDeliveryCtx({} as Db);
  for (let id = 0; id < 5_000; id++) {
    void deliverKnownSoon(ctx, starts, { item: { id }, way: () => open.then(() => void told.known++) });
  }
  letThrough();
  await settleDeliveries(ctx);
  expect(told).toEqual({ known: 32 + 100, byId: 900 });
});
