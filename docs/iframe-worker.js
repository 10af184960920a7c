// The search of pages that are opened as files. It runs in a worker, which browsers refuse there: its script
// then runs in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      const script = this.scope.document.createElement("script");
      script.src = url;
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.document.body.append(script);
    }

    async postMessage(data) {
      await this.loaded;
      this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data }));
    }

    terminate() {
      this.scope.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
