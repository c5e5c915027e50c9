import { randomUUID } from "node:crypto";
import { Checkout } from "./checkout.jsx";

export const dynamic = "force-dynamic"; // a tag for each request, and the keys of where it runs, not of where it was built

export default function Page() {
  return <Checkout apiKey={process.env.SVC_PUBLIC_KEY} endpoint={process.env.SVC_URL} tag={randomUUID()} />;
}
