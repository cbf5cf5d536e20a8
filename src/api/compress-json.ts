/** JSON for clients that read: what is worth it is compressed, in Node's own threads. */
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { acceptedEncoding } from './accepted-encoding.ts';

/** Less is sent as it is. */
const worthBytes = 8_192;

const compress = {
  // As fast as gzip, and smaller.
  br: (text: string) => promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  gzip: (text: string) => promisify(gzip)(text, { level: 5 }),
} as const;

/** Null: it is sent as it is. @param accepted `Accept-Encoding` */
export async function compressJson(
  text: string,
  accepted: string | undefined,
): Promise<{ readonly encoding: string; readonly bytes: Buffer } | null> {
  const encoding = text.length < worthBytes ? null : acceptedEncoding(accepted);
  return encoding === null ? null : { encoding, bytes: await compress[encoding](text) };
}
