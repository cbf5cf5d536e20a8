/** Reads and writes PNG files of 8 bits, as pixels of red, green, blue and alpha. */
import { readFile, writeFile } from 'node:fs/promises';
import { crc32, deflateSync, inflateSync } from 'node:zlib';

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Four bytes for each pixel, row by row. */
  readonly pixels: Uint8Array;
}

const signature = Buffer.from('89504e470d0a1a0a', 'hex');
/** Bytes of a pixel by the colour type of the file. */
const depths: Readonly<Record<number, number>> = { 2: 3, 6: 4 };

/** @throws Error that names the required form of the file */
export async function readPng(path: string): Promise<Picture> {
  const bytes = await readFile(path);
  if (!bytes.subarray(0, 8).equals(signature)) throw new Error('image: the stand-in reads PNG files only');
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  const depth = depths[bytes[25] ?? 0];
  if (bytes[24] !== 8 || depth === undefined || bytes[28] !== 0) {
    throw new Error('image: the stand-in reads PNG files of 8 bits in RGB or RGBA only');
  }
  const data: Buffer[] = [];
  for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    if (bytes.toString('latin1', at + 4, at + 8) !== 'IDAT') continue;
    data.push(bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at)));
  }
  const rows = undoFilters(inflateSync(Buffer.concat(data)), width * depth, depth);
  const pixels = new Uint8Array(width * height * 4).fill(255);
  for (let at = 0; at < width * height; at += 1) {
    pixels.set(rows.subarray(at * depth, (at + 1) * depth), at * 4);
  }
  return { width, height, pixels };
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner;
  const [toLeft, toAbove, toCorner] = [left, above, corner].map((value) => Math.abs(guess - value)) as [
    number,
    number,
    number,
  ];
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}

/** What each filter of PNG, by its number, adds to a byte. */
const predictors: readonly ((left: number, above: number, corner: number) => number)[] = [
  () => 0,
  (left) => left,
  (_, above) => above,
  (left, above) => (left + above) >> 1,
  paeth,
];

function undoFilters(filtered: Buffer, rowBytes: number, depth: number): Uint8Array {
  const height = Math.floor(filtered.length / (rowBytes + 1));
  const rows = new Uint8Array(rowBytes * height);
  for (let y = 0; y < height; y += 1) {
    const predict = predictors[filtered[y * (rowBytes + 1)] ?? 0] ?? (() => 0);
    for (let x = 0; x < rowBytes; x += 1) {
      const at = y * rowBytes + x;
      const left = x < depth ? 0 : (rows[at - depth] ?? 0);
      const corner = x < depth || y === 0 ? 0 : (rows[at - rowBytes - depth] ?? 0);
      const above = y === 0 ? 0 : (rows[at - rowBytes] ?? 0);
      rows[at] = (filtered[y * (rowBytes + 1) + 1 + x] ?? 0) + predict(left, above, corner);
    }
  }
  return rows;
}

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [size, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  size.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([size, body, check]);
}

export function writePng(path: string, { width, height, pixels }: Picture): Promise<void> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 6, 0, 0, 0], 8);
  const rows = Buffer.alloc(height * (width * 4 + 1));
  for (let y = 0; y < height; y += 1) {
    rows[y * (width * 4 + 1)] = 1; // the difference to the pixel on the left
    for (let x = 0; x < width * 4; x += 1) {
      const at = y * width * 4 + x;
      rows[y * (width * 4 + 1) + 1 + x] = (pixels[at] ?? 0) - (x < 4 ? 0 : (pixels[at - 4] ?? 0));
    }
  }
  const chunks = [chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))];
  return writeFile(path, Buffer.concat([signature, ...chunks]));
}
