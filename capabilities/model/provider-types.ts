/** The forms in which the AI SDK takes questions and gives answers. */
import type { createAnthropic } from '@ai-sdk/anthropic';

/** A language model of a provider, as the AI SDK has it below its own functions. */
export type ProviderModel = ReturnType<ReturnType<typeof createAnthropic>>;

export type ProviderOptions = Parameters<ProviderModel['doStream']>[0];

export type Prompt = ProviderOptions['prompt'];

export type StreamPart =
  Awaited<ReturnType<ProviderModel['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never;
