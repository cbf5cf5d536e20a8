import type {
  Hook,
  HookCreated,
  HookDelivery,
  HookDeliveryDetail,
  HookReceipt,
  HookRequest,
  HookSettings,
} from '@capstan/core/contracts/hook';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly, newIdempotencyKey } from './client.ts';

export function hooksQuery() {
  return queryOptions({
    queryKey: ['hooks'],
    queryFn: () => askPlainly<{ readonly items: readonly Hook[] }>('/v1/hooks?limit=200'),
  });
}

/** Newest first. */
export function receivedQuery(name: string) {
  return queryOptions({
    queryKey: ['hooks', name, 'deliveries'],
    queryFn: () =>
      askPlainly<{ readonly items: readonly HookDelivery[] }>(`/v1/hooks/${name}/deliveries?limit=50`),
  });
}

/** With its headers and its body. */
export function receivedDetailQuery(name: string, deliveryId: string) {
  return queryOptions({
    queryKey: ['hooks', name, 'deliveries', deliveryId],
    queryFn: () => askPlainly<HookDeliveryDetail>(`/v1/hooks/${name}/deliveries/${deliveryId}`),
  });
}

/** Each click starts a further run. */
export function replayReceived(name: string, deliveryId: string): Promise<HookReceipt> {
  return askPlainly(`/v1/hooks/${name}/deliveries/${deliveryId}/replay`, {
    method: 'POST',
    headers: { 'Idempotency-Key': newIdempotencyKey() },
  });
}

/** The only answer with the secret. */
export function createHook(body: HookRequest): Promise<HookCreated> {
  return askPlainly('/v1/hooks', { method: 'POST', body });
}

/** Its name and its secret stay. */
export function replaceHook(name: string, body: HookSettings): Promise<Hook> {
  return askPlainly(`/v1/hooks/${name}`, { method: 'PUT', body });
}

export function removeHook(name: string): Promise<void> {
  return askPlainly(`/v1/hooks/${name}`, { method: 'DELETE' });
}
