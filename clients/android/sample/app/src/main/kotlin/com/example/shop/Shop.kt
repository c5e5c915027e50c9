package com.example.shop

import android.app.Application
import svc.visitor.SvcOptions
import svc.visitor.SvcVisitor

/** The app. The key is the public one that `svc key issue` printed. */
class Shop : Application() {
    val visitor: SvcVisitor by lazy {
        SvcVisitor.create(this, SvcOptions.Builder("svc_pk_us_development_...", "http://10.0.2.2:8080").build())
    }
}
