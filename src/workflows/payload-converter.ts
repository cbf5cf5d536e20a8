/**
 * How workflows read payloads: as the SDK does, but a payload that cannot be read is absent, like one that was not
 * sent. A person may send it by hand, in a form that no converter knows, and the SDK would fail the task of its
 * workflow again and again. The functions of `core/received` then find that it is none of Capstan's.
 */
import { defaultPayloadConverter, type PayloadConverter } from '@temporalio/common';

export const payloadConverter: PayloadConverter = {
  toPayload: (value) => defaultPayloadConverter.toPayload(value),
  fromPayload: <Value>(payload: Parameters<PayloadConverter['fromPayload']>[0]): Value => {
    try {
      return defaultPayloadConverter.fromPayload(payload);
    } catch {
      return undefined as Value;
    }
  },
};
