// The name that launch-pad gives to a bucket of its own: launch-pad-state-ACCOUNT-REGION.

/** Undefined for a bucket of another name. */
export function parseStateBucket(name: string): { account: string; region: string | undefined } | undefined {
  const [, account, rest = ''] = /^launch-pad-state-(\d{12})-(.*)$/.exec(name) ?? [];
  if (account === undefined) return undefined;
  return { account, region: /^[a-z]{2}(-[a-z]+)+-\d+$/.test(rest) ? rest : undefined };
}
