// Search without a server: browsers start no worker from a file, so its script runs in a frame.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}))
      const script = this.inside.document.createElement("script")
      this.loaded = new Promise(resolve => (script.onload = resolve))
      script.src = address
      this.inside.document.body.append(script)
    }

    async postMessage(data) {
      await this.loaded
      this.inside.dispatchEvent(new this.inside.MessageEvent("message", {data}))
    }
  }
