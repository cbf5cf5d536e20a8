/** Does one thing after the other, each whatever became of those before it. @throws the first fault, after the last one */
export async function takeTurns(works: readonly (() => Promise<void>)[]): Promise<void> {
  const faults: unknown[] = [];
  for (const work of works) {
    await work().catch((fault: unknown) => {
      faults.push(fault);
    });
  }
  if (faults.length > 0) throw faults[0];
}
