/** Reads and writes WAV files of 16 bits, which is all that a stand-in needs. */
import { readFile, writeFile } from 'node:fs/promises';

export interface Sound {
  /** Samples per second of one channel. */
  readonly rate: number;
  /** Samples from -1 to 1, by channel. */
  readonly channels: readonly Float64Array[];
}

const headerBytes = 44;
const fullScale = 32_768;

/** @throws Error that names the required form of the file */
export async function readWav(path: string): Promise<Sound> {
  const bytes = await readFile(path);
  if (bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WAVE') {
    throw new Error('audio: the stand-in reads WAV files only; ffmpeg reads the others');
  }
  const chunks = new Map<string, Buffer>();
  for (let at = 12; at + 8 <= bytes.length; ) {
    const size = bytes.readUInt32LE(at + 4);
    chunks.set(bytes.toString('latin1', at, at + 4), bytes.subarray(at + 8, at + 8 + size));
    at += 8 + size + (size % 2);
  }
  const [format, data] = [chunks.get('fmt '), chunks.get('data')];
  if (format?.readUInt16LE(0) !== 1 || format.readUInt16LE(14) !== 16 || data === undefined) {
    throw new Error('audio: the stand-in reads WAV files of 16-bit PCM only');
  }
  const count = format.readUInt16LE(2);
  const frames = Math.floor(data.length / 2 / count);
  const channels = Array.from({ length: count }, (_, channel) =>
    Float64Array.from(
      { length: frames },
      (_, at) => data.readInt16LE(2 * (at * count + channel)) / fullScale,
    ),
  );
  return { rate: format.readUInt32LE(4), channels };
}

export function writeWav(path: string, { rate, channels }: Sound): Promise<void> {
  const frames = channels[0]?.length ?? 0;
  const width = 2 * channels.length;
  const bytes = Buffer.alloc(headerBytes + frames * width);
  bytes.write('RIFF', 0, 'latin1');
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.write('WAVEfmt ', 8, 'latin1');
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(channels.length, 22);
  bytes.writeUInt32LE(rate, 24);
  bytes.writeUInt32LE(rate * width, 28);
  bytes.writeUInt16LE(width, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36, 'latin1');
  bytes.writeUInt32LE(frames * width, 40);
  for (const [channel, samples] of channels.entries()) {
    for (const [at, sample] of samples.entries()) {
      const level = Math.max(-fullScale, Math.min(fullScale - 1, Math.round(sample * fullScale)));
      bytes.writeInt16LE(level, headerBytes + at * width + 2 * channel);
    }
  }
  return writeFile(path, bytes);
}

export function secondsOf({ rate, channels }: Sound): number {
  return (channels[0]?.length ?? 0) / rate;
}
