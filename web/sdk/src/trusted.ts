/** Pages that demand Trusted Types let pass what a policy has made. The SDK's own, `svc`, makes what the SDK brings along. */

interface Policy {
  createHTML(text: string): string;
  createScriptURL(text: string): string;
}

interface Factory {
  createPolicy(name: string, rules: Policy): Policy;
}

const asItIs = (text: string): string => text;
const everywhere: Policy = { createHTML: asItIs, createScriptURL: asItIs };

/** The page's own list of policies may refuse it, and an older browser has none. */
function made(): Policy {
  try {
    const { trustedTypes } = globalThis as { trustedTypes?: Factory };
    return trustedTypes?.createPolicy("svc", everywhere) ?? everywhere;
  } catch {
    return everywhere;
  }
}

let policy: Policy | undefined;

export const trustedHtml = (text: string): string => (policy ??= made()).createHTML(text);
export const trustedScriptUrl = (text: string): string => (policy ??= made()).createScriptURL(text);
