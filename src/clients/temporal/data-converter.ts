import type { DataConverter } from '@temporalio/common';
import { createPayloadCodec } from './payload-codec.ts';
import { readPayloadKeys } from './payload-keys.ts';

/**
 * What stands between this process and Temporal, the same for clients and workers.
 *
 * @param payloadKeys the setting `PAYLOAD_KEYS`
 */
export function createDataConverter(payloadKeys: string | undefined): DataConverter {
  const keys = payloadKeys === undefined ? [] : readPayloadKeys(payloadKeys);
  return { payloadCodecs: [createPayloadCodec(keys)] };
}
